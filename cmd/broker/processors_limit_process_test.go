// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

// withoutGo is an environment in which nothing tells Go how many processors to use.
func withoutGo() []string {
	var env []string
	for _, variable := range environment() {
		if !strings.HasPrefix(variable, "GOMAXPROCS=") {
			env = append(env, variable)
		}
	}
	return env
}

func TestABrokerUsesTheProcessorsThatItHas(t *testing.T) {
	half := limit(t, "cpu", map[int]map[string]string{
		1: {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000"}, 2: {"cpu.max": "50000 100000"},
	})
	for sentence, test := range map[string]struct {
		group *limited
		env   []string
		want  int
	}{
		"all of them without a limit":                {nil, withoutGo(), runtime.NumCPU()},
		"as many as GOMAXPROCS says":                 {nil, append(withoutGo(), "GOMAXPROCS=3"), 3},
		"one where the limit is below one":           {half, withoutGo(), 1},
		"as many as GOMAXPROCS says, with the limit": {half, append(withoutGo(), "GOMAXPROCS=3"), 3},
	} {
		t.Run(sentence, func(t *testing.T) {
			at := newPlace(t, "sha-256")
			var broker *process
			switch {
			case test.group != nil:
				broker = startIn(t, test.group, test.env, at.args()...)
			case strings.Contains(sentence, "limit is below"):
				t.Log("this machine lets the test make no control group")
				return
			default:
				broker = startWith(t, test.env, at.args()...)
			}
			if got := broker.logged("listening", 1)["processors"]; got != float64(test.want) {
				t.Errorf("got %v processors, want %d", got, test.want)
			}
			broker.stop()
		})
	}
}

func TestABrokerUsesOneProcessorWhileCallsAreQuickAndAllOfThemForOthers(t *testing.T) {
	at := newPlace(t, "sha-256")
	broker := startWith(t, withoutGo(), at.args()...)
	status := broker.listening()
	client := v1.NewCryptoServiceClient(connect(t, at.socket("")))
	hash := func(size int) {
		t.Helper()
		request := &v1.HashDataRequest{Profile: "Default", Input: make([]byte, size)}
		if _, err := client.HashData(t.Context(), request, grpc.WaitForReady(true)); err != nil {
			t.Fatal(err)
		}
	}
	uses := func(n int) bool {
		t.Helper()
		_, metrics := get(t, status, "/metrics")
		return strings.Contains(metrics, fmt.Sprintf("\ngo_sched_gomaxprocs_threads %d\n", n))
	}
	for deadline := time.Now().Add(waitLimit); !uses(1); {
		if time.Now().After(deadline) {
			t.Fatal("the broker does not use one processor, although calls are quick")
		}
		hash(100)
	}
	hash(100_000)
	if !uses(runtime.NumCPU()) {
		t.Error("the broker does not use all processors, although there was a call that is not quick")
	}
}
