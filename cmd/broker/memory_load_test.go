// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
)

// startLimited starts a broker with so much memory: in a control group of its own
// where the test may make one, which the broker has to find by itself, else by
// the flag.
func startLimited(t *testing.T, bytes int64, at *place) (*process, *limited) {
	t.Helper()
	group := limitMemory(t, bytes)
	if group == nil {
		return start(t, at.args("--memory-limit", strconv.FormatInt(bytes, 10))...), nil
	}
	return startIn(t, group, environment(), at.args()...), group
}

func TestAThousandLargeCallsAtOnceEndWithinTheMemory(t *testing.T) {
	const calls, limit = 1024, 128 << 20
	for sentence, connections := range map[string]int{
		"over one connection":        1,
		"over sixteen connections":   16,
		"over a hundred connections": 100,
		"each over one of its own":   calls,
	} {
		t.Run(sentence, func(t *testing.T) {
			at := newPlace(t, "sha-256")
			broker, group := startLimited(t, limit, at)
			broker.listening()
			clients := make([]v0.CryptoGrpcClient, connections)
			for i := range clients {
				conn := connect(t, at.socket(""))
				conn.Connect()
				clients[i] = v0.NewCryptoGrpcClient(conn)
			}
			input := make([]byte, 1<<20)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			var all sync.WaitGroup
			failures := make(chan error, calls)
			for i := range calls {
				all.Go(func() {
					_, err := clients[i%connections].HashData(ctx, &v0.HashDataRequest{Profile: "Default", Input: input}, grpc.WaitForReady(true))
					if err != nil && status.Code(err) != codes.DeadlineExceeded {
						failures <- err
					}
				})
			}
			all.Wait()
			close(failures)
			var errs []error
			for err := range failures {
				errs = append(errs, err)
			}
			if len(errs) > 0 {
				t.Errorf("%d of %d calls failed, the first by %v", len(errs), calls, errs[0])
			}
			if err := ctx.Err(); err != nil {
				t.Errorf("the calls did not end in time: %v", err)
			}
			select {
			case <-broker.exited:
				t.Error("the broker is gone: ", broker.err)
			default:
			}
			if group != nil {
				t.Logf("highest use %s of %d", group.peak(t), limit)
				if kills := group.kills(t); strings.Contains(kills, "oom_kill ") && !strings.Contains(kills, "oom_kill 0") {
					t.Errorf("the system killed something: %q", kills)
				}
			}
			if group == nil {
				if most := broker.mostResident(); most > limit {
					t.Errorf("resident set of %d bytes, expected at most %d", most, limit)
				}
			}
			broker.stop()
		})
	}
}
