// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestEveryLoadIsServedInEveryWayWithoutAnError(t *testing.T) {
	document := filepath.Join(t.TempDir(), "benchmarks.md")
	figures := filepath.Join(t.TempDir(), "figures.json")
	if err := os.WriteFile(document, []byte("before\n"+reportBegin+"\nold\n"+reportEnd+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := readOptions([]string{"--quick", "--rounds", "1", "--time", "10ms", "--report", document, "--json", figures})
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"before\n", "\nafter\n", "### SHA3-512 of 32 bytes", "### Certificate for P-256 under P-384", "none failed", "resident when idle"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the document has no %q:\n%s", want, text)
		}
	}
	if bytes.Contains(text, []byte("\nold\n")) {
		t.Error("the document still has the results of another run")
	}
	var written struct {
		Cells []struct {
			Load, Way string
			Rounds    []sample
		}
	}
	text, err = os.ReadFile(figures)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &written); err != nil {
		t.Fatal(err)
	}
	for _, c := range written.Cells {
		if len(c.Rounds) != 1 || c.Rounds[0].Calls == 0 || c.Rounds[0].Errors > 0 {
			t.Errorf("%s, %s: found %+v, want a round with calls and without errors", c.Load, c.Way, c.Rounds)
		}
	}
}

func TestASoakFindsThatTheBrokerEndsWhereItBegan(t *testing.T) {
	o, err := readOptions([]string{"--soak", "2s"})
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
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
	if want := (spread{1, 2, 3}); !ok || got != want {
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
