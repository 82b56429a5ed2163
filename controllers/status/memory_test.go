// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestNumbersThatMoveAreHeldBackUnlessSomebodyMayWait(t *testing.T) {
	name := types.NamespacedName{Namespace: "shop", Name: "orders"}
	begin := time.Now()
	at := begin.Add

	m := newMemory()
	steps := []struct {
		sentence                 string
		differs, urgent, settled bool
		after, wait              time.Duration
	}{
		{"numbers that move wait", true, false, false, 0, movingDelay},
		{"a second later they wait a second less", true, false, false, time.Second, movingDelay - time.Second},
		{"settled numbers wait less", true, false, true, time.Second, settledDelay - time.Second},
		{"then they are written", true, false, true, settledDelay, 0},
		{"what is written waits for nothing", false, false, true, settledDelay, 0},
		{"other numbers wait anew", true, false, true, 3 * time.Second, settledDelay},
		{"news doesn't wait", true, true, false, 4 * time.Second, 0},
		{"the numbers that follow wait while they move", true, false, false, 5 * time.Second, settledDelay},
		{"until they have settled", true, false, true, 6 * time.Second, 0},
		{"after which numbers wait", true, false, false, 7 * time.Second, movingDelay},
	}
	for _, step := range steps {
		if wait := m.delay(name, step.differs, step.urgent, step.settled, at(step.after)); wait != step.wait {
			t.Errorf("%s: waits %s, expected %s", step.sentence, wait, step.wait)
		}
	}
	m.retain("shop", func(string) bool { return false })
	if len(m.profiles) != 0 {
		t.Errorf("%d namespaces are remembered", len(m.profiles))
	}
}

func TestAStatusIsNotWrittenFromACacheThatIsOlderThanTheLastWrite(t *testing.T) {
	name := types.NamespacedName{Namespace: "shop", Name: "orders"}
	m := newMemory()
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
	m := newMemory()
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
