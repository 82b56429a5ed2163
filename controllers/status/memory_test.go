// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestNumbersThatMoveAreHeldBackUnlessSomebodyMayWait(t *testing.T) {
	name := types.NamespacedName{Namespace: "shop", Name: "orders"}
	begin := time.Now()
	at := begin.Add

	m := newMemory(true)
	steps := []struct {
		sentence    string
		differs     difference
		settled     bool
		after, wait time.Duration
	}{
		{"numbers that move wait", inNumbers, false, 0, movingDelay},
		{"a second later they wait a second less", inNumbers, false, time.Second, movingDelay - time.Second},
		{"settled numbers wait less", inNumbers, true, time.Second, settledDelay - time.Second},
		{"then they are written", inNumbers, true, settledDelay, 0},
		{"what is written waits for nothing", same, true, settledDelay, 0},
		{"other numbers wait anew", inNumbers, true, 3 * time.Second, settledDelay},
		{"news doesn't wait", urgent, false, 4 * time.Second, 0},
		{"the numbers that follow wait while they move", inNumbers, false, 5 * time.Second, settledDelay},
		{"until they have settled", inNumbers, true, 6 * time.Second, 0},
		{"after which numbers wait", inNumbers, false, 7 * time.Second, movingDelay},
	}
	for _, step := range steps {
		wait, _ := m.delay(name, step.differs, step.settled, 1, at(step.after))
		if wait != step.wait {
			t.Errorf("%s: waits %s, expected %s", step.sentence, wait, step.wait)
		}
		if wait == 0 && step.differs != same {
			m.wrote(name, "1")
		}
	}
	m.retain("shop", func(string) bool { return false })
	if len(m.profiles) != 0 {
		t.Errorf("%d namespaces are remembered", len(m.profiles))
	}
}

func TestNumbersThatManyProfilesHaveInCommonAreWrittenSeldom(t *testing.T) {
	begin := time.Now()
	for sentence, test := range map[string]struct {
		differs         difference
		settled, waited bool
		alike           int
		wait            time.Duration
	}{
		"numbers of 500 profiles wait 25 s":             {inNumbers, true, false, 500, 25 * time.Second},
		"numbers of 40 profiles wait as numbers of one": {inNumbers, true, false, 40, settledDelay},
		"numbers of 2,000 profiles that move":           {inNumbers, false, false, 2000, 100 * time.Second},
		"numbers of 500 profiles that move":             {inNumbers, false, false, 500, movingDelay},
		"what is wrong with 500 profiles waits no more": {inReasons, true, false, 500, settledDelay},
		"nor does a profile among 500 that is new":      {urgent, true, false, 500, 0},
		"nor do the numbers that somebody may wait for": {inNumbers, true, true, 500, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			m, name := newMemory(true), types.NamespacedName{Namespace: "shop", Name: "orders"}
			if test.waited {
				m.delay(name, urgent, false, test.alike, begin)
			}
			if wait, _ := m.delay(name, test.differs, test.settled, test.alike, begin); wait != test.wait {
				t.Errorf("waits %s, expected %s", wait, test.wait)
			}
		})
	}
}

func TestNumbersWaitForTheResyncOfKubeletsThatNothingWakes(t *testing.T) {
	name := types.NamespacedName{Namespace: "shop", Name: "orders"}
	if wait, _ := newMemory(false).delay(name, inReasons, false, 1, time.Now()); wait != resyncDelay {
		t.Errorf("a profile that did not change waits %s, expected %s", wait, resyncDelay)
	}
}

func TestAGenerationBecomesPropagatedOnce(t *testing.T) {
	type condition = *metav1.Condition
	of := func(generation int64, status metav1.ConditionStatus) condition {
		return &metav1.Condition{Status: status, ObservedGeneration: generation}
	}
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	for sentence, test := range map[string]struct {
		written []condition
		isNew   bool
	}{
		"a new profile that its brokers have at once":           {[]condition{nil, of(1, yes)}, true},
		"a new profile that its brokers have later":             {[]condition{nil, of(1, no), of(1, yes)}, true},
		"a changed profile that its brokers have at once":       {[]condition{of(1, yes), of(2, yes)}, true},
		"a changed profile that its brokers have later":         {[]condition{of(1, yes), of(2, no), of(2, no), of(2, yes)}, true},
		"a profile that other numbers are written of":           {[]condition{of(2, yes), of(2, yes)}, false},
		"a profile whose set changed by another one":            {[]condition{of(2, yes), of(2, no), of(2, yes)}, false},
		"a profile whose brokers could not be asked for a time": {[]condition{of(2, yes), of(2, unknown), of(2, yes)}, false},
		"a profile that changed after its set did":              {[]condition{of(2, yes), of(2, no), of(3, no), of(3, yes)}, true},
		"another profile of its name":                           {[]condition{of(1, yes), of(1, no), nil, of(1, no), of(1, yes)}, true},
		"a profile that its brokers do not have yet":            {[]condition{of(1, yes), of(2, no)}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			m, name := newMemory(true), types.NamespacedName{Namespace: "shop", Name: "orders"}
			isNew := false
			for i, after := range test.written[1:] {
				if after != nil {
					isNew = m.becamePropagated(name, test.written[i], after)
				}
			}
			if isNew != test.isNew {
				t.Errorf("found that it is new: %t, expected %t", isNew, test.isNew)
			}
		})
	}
}

func TestAStatusIsNotWrittenFromACacheThatIsOlderThanTheLastWrite(t *testing.T) {
	name := types.NamespacedName{Namespace: "shop", Name: "orders"}
	m := newMemory(true)
	if m.isBehind(name, "1") {
		t.Error("without a write there is nothing to wait for")
	}
	m.wrote(name, "10")
	for _, found := range []string{"9", "9", "1"} {
		if !m.isBehind(name, found) {
			t.Errorf("version %q is older than 10", found)
		}
	}
	if m.isBehind(name, "10") {
		t.Error("version 10 is the write itself")
	}
	if m.isBehind(name, "9") {
		t.Error("what was seen once is not waited for again")
	}
	m.wrote(name, "10")
	m.forget(name)
	if m.isBehind(name, "9") {
		t.Error("what was forgotten is not waited for")
	}
	if len(m.profiles) != 0 {
		t.Errorf("%d namespaces are remembered", len(m.profiles))
	}
}

func TestWhatIsRememberedOfAProfileGoesWithIt(t *testing.T) {
	gone := types.NamespacedName{Namespace: "shop", Name: "gone"}
	kept := types.NamespacedName{Namespace: "shop", Name: "kept"}
	other := types.NamespacedName{Namespace: "bank", Name: "gone"}
	m := newMemory(true)
	for _, name := range []types.NamespacedName{gone, kept, other} {
		m.wrote(name, "10")
	}
	m.retain("shop", func(name string) bool { return name == "kept" })
	for name, want := range map[types.NamespacedName]bool{gone: false, kept: true, other: true} {
		if found := m.isBehind(name, "9"); found != want {
			t.Errorf("%s is remembered: %t, expected %t", name, found, want)
		}
	}
}
