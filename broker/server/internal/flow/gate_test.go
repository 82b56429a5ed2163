// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/clock"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/limits"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/work"
)

func TestACallerIsThrottledByManyMisusesAndByNoSingleOne(t *testing.T) {
	c := NewCaller("app", Share{calls: 1, memory: 1}, &work.Processors{})
	for n := 1; n < throttleMisuses; n++ {
		c.noteMisuse()
		if c.throttled() {
			t.Fatalf("throttled after %d calls, want %d", n, throttleMisuses)
		}
	}
	// From here on, all misuses are old.
	c.misusesSince.Add(-int64(2 * throttleTime))
	c.noteMisuse()
	if c.throttled() {
		t.Error("throttled by calls that are too far apart")
	}
	for range throttleMisuses {
		c.noteMisuse()
	}
	if !c.throttled() {
		t.Errorf("not throttled after %d calls", throttleMisuses)
	}
	c.throttledAt.Add(-int64(throttleTime + time.Hour))
	if c.throttled() {
		t.Error("throttled for longer than it should be")
	}
}

func TestBytesOfNoCallAndNoMessageAreAMisuse(t *testing.T) {
	c := callerOfTest(1, 100, 1<<20)
	c.misusesSince.Store(clock.Nanos(time.Now().Add(time.Hour))) // the count does not start again, however slow the machine is
	expect := func(want int, what string) {
		t.Helper()
		if got := int(c.misuses.Load()); got != want {
			t.Errorf("%d misuses after %s, want %d", got, what, want)
		}
	}
	c.received(int(c.maxAllowance()))
	expect(0, "as much as the allowance")
	for range 5 {
		c.received(misuseBytes)
	}
	expect(5, "five times as much as is a misuse")
	p, err := connOfTest(t, c).Enter(profile.OpHashData)
	if err != nil {
		t.Fatal(err)
	}
	defer p.End()
	c.received(limits.MaxHeaderSize)
	expect(5, "the bytes of a call")
	for range 1000 {
		c.credit(limits.MaxMessageSize)
	}
	c.received(int(c.maxAllowance()) + misuseBytes)
	expect(6, "more than the allowance, although calls had been far more")
}
