// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/limits"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestAMessageWaitsUntilItsCallerMayTransferIt(t *testing.T) {
	const never = time.Hour
	for name, test := range map[string]struct {
		// end ends the transfer of another message, soon after it began.
		end      func(*Slot)
		deadline time.Duration
		waits    time.Duration
		code     codes.Code
	}{
		"until the reply of another one is written":       {(*Slot).End, never, transferTime / 5, codes.OK},
		"until another one has a reply of few bytes":      {encodeFewBytes, never, transferTime / 5, codes.OK},
		"until a stream has another one":                  {func(p *Slot) { p.memory = p.HandOverMemory() }, never, transferTime / 5, codes.OK},
		"until another one has taken too long":            {func(*Slot) {}, never, transferTime, codes.OK},
		"until its deadline":                              {func(*Slot) {}, transferTime / 2, transferTime / 2, codes.DeadlineExceeded},
		"and a reply of many bytes, which is not written": {encodeManyBytes, never, transferTime, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := callerOfTest(1, 10, 1<<30)
				conn := connOfTest(t, c)
				other, p := enterOfTest(t, conn), enterOfTest(t, conn)
				if err := other.TakeMemory(t.Context(), named("M"), int(c.maxTransfers), never); err != nil {
					t.Fatal(err)
				}
				ended := make(chan struct{})
				time.AfterFunc(transferTime/5, func() {
					defer close(ended)
					test.end(other)
				})
				ctx, cancel := context.WithTimeout(t.Context(), test.deadline)
				defer cancel()
				began := time.Now()
				err := p.TakeMemory(ctx, named("M"), limits.MaxInputSize, never)
				if took := time.Since(began); took != test.waits || status.Code(err) != test.code {
					t.Errorf("got %v after %s, want %s after %s", err, took, test.code, test.waits)
				}
				p.End()
				<-ended
				if other.conn != nil {
					other.End()
				}
				synctest.Wait()
				checkNothingTaken(t, c)
			})
		})
	}
}

func encodeFewBytes(p *Slot)  { encodeBytes(p, SmallMessage/2) }
func encodeManyBytes(p *Slot) { encodeBytes(p, limits.MaxInputSize) }

func encodeBytes(p *Slot, size int) {
	if err := encodeOfTest(p, wrapperspb.Bytes(make([]byte, size))); err != nil {
		panic(err)
	}
}

func TestSmallMessagesAreTransferredAtOnce(t *testing.T) {
	c := callerOfTest(1, 10, 1<<30)
	conn := connOfTest(t, c)
	large, small := enterOfTest(t, conn), enterOfTest(t, conn)
	if err := large.TakeMemory(t.Context(), named("M"), int(c.maxTransfers), limitTime); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel() // all waiting transfers fail
	if err := small.TakeMemory(over, named("M"), SmallMessage, limitTime); err != nil {
		t.Errorf("a small message waits for a large one: %v", err)
	}
	large.End()
	small.End()
	checkNothingTaken(t, c)
}
