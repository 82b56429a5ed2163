// SPDX-License-Identifier: Apache-2.0

package sessionbench

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// failing is a target that begins and ends sessions, and fails requests from a number on.
type failing struct {
	begun, ended, sent atomic.Int64
	from               int64
	failed             func() // called for the first failure
}

func (*failing) phases() (toBegin, toSend []string) { return []string{"begin"}, []string{"send"} }

func (f *failing) connect(context.Context) (server, error) { return f, nil }

func (f *failing) begin(context.Context, *initRequest, *stopwatch) (*initReply, error) {
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return &initReply{fmt.Sprint(f.begun.Add(1)), encode(key.PublicKey().Bytes())}, nil
}

func (f *failing) send(context.Context, *message, *stopwatch) (*message, error) {
	if f.sent.Add(1) == f.from && f.failed != nil {
		f.failed()
	}
	return nil, errors.New("no such application")
}

func (f *failing) end(ctx context.Context, _ string) error {
	if ctx.Err() == nil {
		f.ended.Add(1)
	}
	return ctx.Err()
}

func (*failing) close() {}

func TestNoSessionIsLeft(t *testing.T) {
	for sentence, test := range map[string]struct {
		what      string
		interrupt bool
		measure   func(context.Context, Config, string) error
	}{
		"if the first request fails":      {"both", false, func(ctx context.Context, c Config, _ string) error { _, err := Measure(ctx, c); return err }},
		"if later requests fail":          {"both", false, func(ctx context.Context, c Config, what string) error { _, err := measure(ctx, &c, what); return err }},
		"after an interrupt":              {"request", true, func(ctx context.Context, c Config, what string) error { _, err := measure(ctx, &c, what); return err }},
		"after an interrupt in a session": {"both", true, func(ctx context.Context, c Config, what string) error { _, err := measure(ctx, &c, what); return err }},
	} {
		t.Run(sentence, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			target := &failing{from: 5}
			if test.interrupt {
				target.failed = stop
			}
			err := test.measure(ctx, Config{Target: target, Version: 1, Connections: 3, Requests: 10, Size: 16, Path: "/", Measure: []string{"both"}}, test.what)
			if begun, ended := target.begun.Load(), target.ended.Load(); begun == 0 || begun != ended {
				t.Errorf("%d sessions have begun and %d have ended (error %v)", begun, ended, err)
			}
		})
	}
}

func TestAPercentileIsTheSmallestTimeThatSoManyDoNotExceed(t *testing.T) {
	sorted := make([]time.Duration, 200)
	for i := range sorted {
		sorted[i] = time.Duration(i + 1)
	}
	for p, want := range map[int]time.Duration{50: 100, 95: 190, 99: 198, 100: 200} {
		if got := percentile(sorted, p); got != want {
			t.Errorf("of 200 times, the percentile %d is number %d, want %d", p, got, want)
		}
	}
	for _, p := range []int{50, 95, 99} {
		if got := percentile(sorted[:1], p); got != 1 {
			t.Errorf("of one time, the percentile %d is number %d", p, got)
		}
	}
}

func TestTheRateCountsTheTimeInOperations(t *testing.T) {
	// Two connections made 100 and 50 operations, each within half a second.
	workers := []*worker{
		{times: [][]time.Duration{make([]time.Duration, 100)}, spent: time.Second / 2},
		{times: [][]time.Duration{make([]time.Duration, 50)}, spent: time.Second / 2, failed: 3},
		{times: [][]time.Duration{nil}},
	}
	var r Row
	r.sum(workers)
	if r.PerSecond != 300 || r.Failed != 3 {
		t.Errorf("%f a second and %d failed, want 300 and 3", r.PerSecond, r.Failed)
	}
}
