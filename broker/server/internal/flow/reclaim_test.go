// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/clock"
)

func TestAReplyThatGRPCDroppedGivesBackWhatItsCallHeld(t *testing.T) {
	open, closed := make(chan struct{}), make(chan struct{})
	close(closed)
	for sentence, test := range map[string]struct {
		ended   chan struct{}
		age     time.Duration
		writing bool
		back    bool
	}{
		"a call that has ended for a while":                    {ended: closed, age: reclaimTime, back: true},
		"not one that has just ended":                          {ended: closed, age: reclaimTime / 2},
		"not one whose client may still read":                  {ended: open, age: time.Hour},
		"not one of a connection that something is written to": {ended: closed, age: time.Hour, writing: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := callerOfTest(1, 10, 1<<20)
			conn := connOfTest(t, c)
			if !c.admit(conn) {
				t.Fatal("there is room")
			}
			p := enterOfTest(t, conn)
			p.ended = test.ended
			if err := p.TakeMemory(t.Context(), named("M"), 100<<10, limitTime); err != nil {
				t.Fatal(err)
			}
			if err := encodeOfTest(p, wrapperspb.Bytes(make([]byte, 100<<10))); err != nil {
				t.Fatal(err)
			}
			written := p.wireMessage()
			if test.writing {
				conn.writing.Store(clock.Nanos(time.Now()))
			}
			c.reclaim(p.since.Add(test.age))
			if back := c.Calls() == 0; back != test.back {
				t.Errorf("the call is given back: %t, want %t", back, test.back)
			}
			conn.writing.Store(0)
			written.Free() // gRPC had taken the memory
			checkNothingTaken(t, c)
		})
	}
}

func TestConnectionsAreLookedAtOnceASecondHoweverManyCallsWaitForMemory(t *testing.T) {
	c := callerOfTest(1, 10, 1<<20)
	now := time.Now()
	c.reclaim(now)
	for n := range 100 {
		c.reclaim(now.Add(time.Duration(n) * reclaimTime / 100))
	}
	if got := c.reclaimedAt.Load(); got != clock.Nanos(now) {
		t.Error("the connections were looked at again within a second")
	}
	c.reclaim(now.Add(reclaimTime))
	if got, want := c.reclaimedAt.Load(), clock.Nanos(now.Add(reclaimTime)); got != want {
		t.Error("the connections were not looked at again after a second")
	}
}
