// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
)

func TestACallerOfAMeasurementCallsAtLeastOnceHoweverLateItIs(t *testing.T) {
	tooShort := &way{call: func(context.Context, int) error { return nil }}
	found, err := tooShort.calls(t.Context(), 3, forDuration(time.Nanosecond))
	if err != nil || len(found.took) < 3 {
		t.Errorf("got %d calls of 3 callers, %v", len(found.took), err)
	}
}

func TestATurnOfASoakMakesTheSameCallsHoweverSlowTheyAre(t *testing.T) {
	for sentence, duration := range map[string]time.Duration{"quick calls": 0, "slow calls": time.Millisecond} {
		t.Run(sentence, func(t *testing.T) {
			w := &way{call: func(ctx context.Context, _ int) error {
				ended, cancel := context.WithTimeout(ctx, duration)
				defer cancel()
				<-ended.Done()
				return nil
			}}
			if found, err := w.calls(t.Context(), 4, times(5)); err != nil || len(found.took) != 20 {
				t.Errorf("got %d calls, %v, want 20", len(found.took), err)
			}
		})
	}
}

func TestACellWithErrorsHasNoFigures(t *testing.T) {
	good := &cell{load: "hash-32", way: floor, callers: 1, samples: []sample{{Calls: 10, PerSecond: 10, P50: time.Millisecond}}}
	bad := &cell{load: "hash-32", way: unary, callers: 1, samples: []sample{{Calls: 10, Errors: 1, PerSecond: 20, P50: time.Millisecond}}}
	r := &results{cells: []*cell{good, bad}}
	if got := r.rowOf(bad); got.Errors != 1 || got.P50 != "" || got.PerSecond != "" || got.OfFloor != "" {
		t.Errorf("got %+v, want the errors alone", got)
	}
	if verdicts := r.judge(); len(verdicts) > 0 {
		t.Errorf("got the verdicts %+v, want none", verdicts)
	}
	if err := r.failed(); err == nil || err.Error() != "1 calls failed" {
		t.Errorf("got the error %v", err)
	}
}

func TestRatiosAreThoseOfEachRound(t *testing.T) {
	of := &cell{samples: []sample{{PerSecond: 10}, {PerSecond: 200}, {PerSecond: 30}}}
	to := &cell{samples: []sample{{PerSecond: 10}, {PerSecond: 100}, {PerSecond: 10}}}
	got, ok := ratio(of, to, perSecond)
	if want := (measurement.Spread{Low: 1, Median: 2, High: 3}); !ok || got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestATargetStandsBesideWhatTheBoundLeavesRoomFor(t *testing.T) {
	r := &results{options: options{callers: []int{1}}}
	for way, perSecond := range map[string]float64{floor: 10, unary: 9, multiplexed: 20} {
		r.cells = append(r.cells, &cell{load: "hash-32", way: way, callers: 1, samples: []sample{{Calls: 10, PerSecond: perSecond, P50: time.Millisecond}}})
	}
	var text strings.Builder
	r.writeTargets(&text)
	want := "| broker | ≥ 0.95 | **0.90 (0.90–0.90) missed** |\n| | | bound: one multiplexed connection | | 2.00 (2.00–2.00) |\n"
	if !strings.Contains(text.String(), want) {
		t.Errorf("got\n%s\nwant in it\n%s", &text, want)
	}
	if got := r.rowOf(r.cell("hash-32", unary, 1)).OfBound; got != "0.45 (0.45–0.45)" {
		t.Errorf("the row has %q of the bound, want 0.45", got)
	}
}

func TestATargetOfTheBoundStandsBesideWhatGRPCLeavesRoomFor(t *testing.T) {
	r := &results{options: options{callers: []int{16}}}
	for way, perSecond := range map[string]float64{multiplexed: 10, streamed: 7, library: 5} {
		r.cells = append(r.cells, &cell{load: "hash-32", way: way, callers: 16, samples: []sample{{Calls: 10, PerSecond: perSecond, P50: time.Millisecond}}})
	}
	var text strings.Builder
	r.writeTargets(&text)
	want := "| broker, Go client | ≥ 0.6 | **0.50 (0.50–0.50) missed** |\n| | | bound of gRPC: one bare stream | | 0.70 (0.70–0.70) |\n"
	if !strings.Contains(text.String(), want) {
		t.Errorf("got\n%s\nwant in it\n%s", &text, want)
	}
}

func TestABadCommandLineIsOneSentence(t *testing.T) {
	for sentence, test := range map[string]struct{ args, want string }{
		"a load that is not there":    {"--only=hash-32,hash-33", `there is no load "hash-33", expected of hash-32,`},
		"a way that is not there":     {"--ways=direct", `there is no way "direct", expected of in-process,`},
		"too many callers":            {"--callers=1,65", `--callers has "65", expected numbers from 1 to 64, separated by commas`},
		"no round":                    {"--rounds=0", "--rounds is 0, expected at least 1"},
		"a time that says nothing":    {"--time=1ms", "--time is 1ms, expected at least 10ms"},
		"an argument":                 {"hash-32", `found the argument "hash-32", expected flags only`},
		"a soak of less than no time": {"--soak=-1s", "--soak is -1s, expected a positive duration"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if _, err := readOptions([]string{test.args}); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestADocumentNeedsBothMarkers(t *testing.T) {
	for sentence, document := range map[string]string{"none": "text", "the first only": reportBegin, "the wrong order": reportEnd + reportBegin} {
		t.Run(sentence, func(t *testing.T) {
			if made, err := replaceBetween(document, "new"); err == nil {
				t.Errorf("got %q, want an error", made)
			}
		})
	}
}
