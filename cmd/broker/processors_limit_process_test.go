// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	streamv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/stream/v1"
	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

// withoutGo returns an environment without GOMAXPROCS.
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

// monitorWaits returns how often the monitor thread of Go's runtime in a broker began to
// wait. It is the first thread that the runtime starts.
func monitorWaits(t *testing.T, broker *process) int {
	t.Helper()
	folder := fmt.Sprintf("/proc/%d/task", broker.cmd.Process.Pid)
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var threads []int
	for _, entry := range entries {
		id, err := strconv.Atoi(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		threads = append(threads, id)
	}
	slices.Sort(threads)
	text, err := os.ReadFile(fmt.Sprintf("%s/%d/status", folder, threads[1]))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:")
	count, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(strings.TrimSpace(count))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// If the broker announced its reads and writes to Go's scheduler, every second or third of
// these calls would wake the monitor thread. The bound and the rounds are for processors
// that others use.
func TestQuickCallsDoNotWakeTheMonitorThreadOfGo(t *testing.T) {
	at := newPlace(t, "sha-256")
	broker := startWith(t, withoutGo(), at.args()...)
	broker.listening()
	stream := openExchange(t, connect(t, at.socket("")))
	call := func(id uint64) {
		t.Helper()
		request := &streamv1.Call_HashData{HashData: &v1.HashDataRequest{Profile: "Default", Input: make([]byte, 32)}}
		if err := stream.Send(&streamv1.ExchangeRequest{Calls: []*streamv1.Call{{Id: id, Request: request}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	// The first quick calls make the broker use one processor.
	for began := time.Now(); time.Since(began) < 200*time.Millisecond; {
		call(0)
	}
	const rounds, calls = 5, 2000
	var waits []int
	for range rounds {
		before := monitorWaits(t, broker)
		for id := range uint64(calls) {
			call(id + 1)
		}
		waits = append(waits, monitorWaits(t, broker)-before)
	}
	if slices.Min(waits) > calls/8 {
		t.Errorf("in rounds of %d calls the monitor thread was woken %d times, want it to sleep", calls, waits)
	}
}
