// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if servedAsCaller() { // the tests start this program again for the other caller
		return
	}
	os.Exit(m.Run())
}

// testTime is how long an attack lasts in tests. What it does to the broker begins
// within the first second.
const testTime = 1500 * time.Millisecond

func TestTheBrokerSurvivesAttacksOfOneCallerAndServesTheOther(t *testing.T) {
	o := options{root: filepath.Join("..", ".."), time: testTime, limit: 128 << 20}
	p, err := prepare(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.remove(); err != nil {
			t.Error(err)
		}
	})
	for _, a := range attacks() {
		if !a.tested {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			r, err := try(t.Context(), o, p, a)
			if err != nil {
				t.Fatal(err)
			}
			if !r.lived || r.kills > 0 {
				t.Errorf("the broker ended (%s), and the system killed %d processes for want of memory", r.exit, r.kills)
			}
			if r.during.Errors+r.during.FreshErrors > 0 {
				t.Errorf("%d calls of the other caller failed and %d by new connections, the first by %s", r.during.Errors, r.during.FreshErrors, r.during.Error)
			}
			if a.polite && r.tally.failures() > 0 {
				t.Errorf("calls failed that are no abuse: %s", r.tally)
			}
			if r.slow() {
				t.Errorf("the other caller had %d calls answered in %s, and waited %s for one", r.during.Calls, r.took, r.during.Max)
			}
			if t.Failed() {
				t.Logf("%s: highest use %d bytes; the attacker saw %s", a.about, r.peak, r.tally)
				t.Log(strings.Join(r.log, "\n"))
			}
		})
	}
}

func TestEveryAttackHasANameOfItsOwnAndASentence(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range attacks() {
		if seen[a.name] {
			t.Errorf("there are two attacks %s", a.name)
		}
		seen[a.name] = true
		if a.about == "" || a.run == nil {
			t.Errorf("%s has no sentence or does nothing", a.name)
		}
	}
}

func TestAttacksAreChosenByName(t *testing.T) {
	for sentence, test := range map[string]struct {
		only string
		want []string
	}{
		"one":                       {"rapid-reset", []string{"rapid-reset"}},
		"two, in the order given":   {"trickle,empty-keys", []string{"trickle", "empty-keys"}},
		"all that begin in one way": {"rsa-4096*", []string{"rsa-4096"}},
		"one that two names choose": {"rsa-4096,rsa-4096*", []string{"rsa-4096"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			found, err := chosen(test.only)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, a := range found {
				names = append(names, a.name)
			}
			if strings.Join(names, ",") != strings.Join(test.want, ",") {
				t.Errorf("got %q, want %q", names, test.want)
			}
		})
	}
}

func TestWrongOptionsAreRefusedWithWhatWasExpected(t *testing.T) {
	for sentence, test := range map[string]struct{ args, want string }{
		"an attack that is not there":   {"--only=sorcery", `there is no attack "sorcery", see --list`},
		"no attack that begins so":      {"--only=sorcery*", `there is no attack "sorcery*", see --list`},
		"a time that is too short":      {"--seconds=0.1", "--seconds is 0.1, expected 1 to 60"},
		"a time that is too long":       {"--ordinary=61", "--ordinary is 61, expected 0 to 60"},
		"no rounds":                     {"--rounds=0", "--rounds is 0, expected at least 1"},
		"less memory than a start uses": {"--memory=1", "--memory is 1, expected at least 16777216"},
		"an argument":                   {"rapid-reset", `found the argument "rapid-reset", expected flags only`},
		"fairness without a comparison": {"--fairness --ordinary=0", "--ordinary is 0, and --fairness compares with it"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if _, err := readOptions(strings.Fields(test.args)); err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestTheVerdictIsTheWorstOfWhatHappened(t *testing.T) {
	fine := func() *result {
		return &result{lived: true, served: true, took: time.Second, during: measured{Calls: 100, Max: time.Millisecond}, tally: newTally()}
	}
	for sentence, test := range map[string]struct {
		change func(*result)
		want   string
	}{
		"nothing":                               {func(*result) {}, passed},
		"the broker ended":                      {func(r *result) { r.lived, r.during.Errors = false, 1 }, killed},
		"the system killed a process":           {func(r *result) { r.kills = 1 }, killed},
		"a call of the other caller failed":     {func(r *result) { r.during.Errors = 1 }, starved},
		"a call by a new connection failed":     {func(r *result) { r.during.FreshErrors = 1 }, starved},
		"a call waited for longer than it may":  {func(r *result) { r.during.Max = callLimit + 1 }, starved},
		"the other caller made nearly no calls": {func(r *result) { r.during.Calls = 1 }, starved},
		"the attacker was not served any more":  {func(r *result) { r.served = false }, notAgain},
		"calls failed that are no abuse":        {func(r *result) { r.attack.polite = true; r.tally.call(errors.New("no")) }, callsFail},
		"calls failed that are abuse":           {func(r *result) { r.tally.call(errors.New("no")) }, passed},
		"a probe of the status port failed":     {func(r *result) { r.probesFailed = 1 }, probesFail},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := fine()
			test.change(r)
			if got := r.verdict(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestTheTimesOfTheOtherCallerCountTheCallThatIsUnderWay(t *testing.T) {
	r := &recorder{times: []time.Duration{3, 1, 2}, begun: time.Now().Add(-time.Minute)}
	if m := r.take(); m.Calls != 3 || m.P50 != 2 || m.P99 != 3 || m.Max < time.Minute {
		t.Errorf("got %+v", m)
	}
	if m := r.take(); m.Calls != 0 || m.P99 != 0 || m.Max < time.Minute {
		t.Errorf("the second time: got %+v", m)
	}
}
