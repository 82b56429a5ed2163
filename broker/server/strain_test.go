// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
)

func TestACallerIsSlowedDownByManyCallsThatAreRefusedAndByNoSingleOne(t *testing.T) {
	c := newCaller("app", bounds{calls: 1, memory: 1})
	for n := 1; n < strainCalls; n++ {
		c.strain()
		if c.strained() {
			t.Fatalf("strained after %d calls, want %d", n, strainCalls)
		}
	}
	// As if all of them had been a while ago.
	c.strainsSince.Add(-int64(2 * strainTime))
	c.strain()
	if c.strained() {
		t.Error("strained by calls that are too far apart")
	}
	for range strainCalls {
		c.strain()
	}
	if !c.strained() {
		t.Errorf("not strained after %d calls", strainCalls)
	}
	c.strainedAt.Add(-int64(strainTime + time.Hour))
	if c.strained() {
		t.Error("strained for longer than it should be")
	}
}

func TestWhatBeginsNoCallAndBelongsToNoMessageStrainsItsCaller(t *testing.T) {
	c := callerOfTest(1, 100, 1<<20)
	expect := func(want int, what string) {
		t.Helper()
		if got := int(c.strains.Load()); got != want {
			t.Errorf("%d strains after %s, want %d", got, what, want)
		}
	}
	c.came(int(c.mostSpared()))
	expect(0, "as much as is spared")
	for range 5 {
		c.came(uselessBytes)
	}
	expect(5, "five times as much as is a strain")
	p, err := connOfTest(t, c).enter(engine.HashData)
	if err != nil {
		t.Fatal(err)
	}
	defer p.end()
	c.came(maxHeaderSize)
	expect(5, "the bytes of a call")
	for range 1000 {
		c.useful(maxMessageSize)
	}
	c.came(int(c.mostSpared()) + uselessBytes)
	expect(6, "more than is spared, although calls had been far more")
}
