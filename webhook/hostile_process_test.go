// SPDX-License-Identifier: Apache-2.0

//go:build process

package webhook

import (
	"context"
	"fmt"
	"math/rand"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// Anybody who reaches the port can send requests that no API server would send: a list of empty items that becomes a hundred times
// larger when it is parsed.
func TestARequestTakesNoMoreMemoryThanItCountsFor(t *testing.T) {
	handler := podHandler(t)
	requests := map[string][]byte{}
	for _, item := range []string{"null", "{}"} {
		for path, pod := range emptyLists(2_000, item) {
			requests[fmt.Sprintf("2,000 times %s in %s", item, path)] = reviewOf(pod)
		}
	}
	for what, pod := range fixture.Oversized(injectedPodWith(t).Spec.InitContainers[0]) {
		requests[what] = reviewOf(string(fixture.JSON(t, pod)))
	}
	requests["a kind of 6 MB"] = []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"` + strings.Repeat("x", 6_000_000) + `"}`)
	requests["a pod that is a text of 6 MB"] = reviewOf(`"` + strings.Repeat("- a", 2_000_000) + `"`)
	requests["a user in 12,000 groups"] = []byte(`{"request":{"userInfo":{"groups":[` + strings.Repeat(`"",`, 12_000) + `""]}}}`)
	asked(handler, "192.0.2.1", reviewOf("{}"))
	for what, body := range requests {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		response := asked(handler, "192.0.2.1", body)
		runtime.ReadMemStats(&after)
		allocated, most := after.TotalAlloc-before.TotalAlloc, overall*uint64(max(measure(body).memory(), leastPod))
		if allocated > most {
			t.Errorf("%s: %d bytes were allocated for %d bytes that were sent, expected at most %d", what, allocated, len(body), most)
		}
		if answer := uint64(response.Body.Len()); answer > most/overall {
			t.Errorf("%s: the answer has %d bytes", what, response.Body.Len())
		}
	}
}

// hostileSeconds is the duration of the attack, long enough to show memory that is not released.
const hostileSeconds = 3

// The container of the operator has 512 MiB, of which its caches need a part.
func TestManyHostileRequestsAtOnceStayWithinMemory(t *testing.T) {
	const limit = 320 << 20
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(limit * 3 / 4))
	handler := podHandler(t)
	var bodies [][]byte
	for _, pod := range emptyLists(5_000, "null") {
		bodies = append(bodies, reviewOf(pod))
	}
	for _, pod := range fixture.Oversized(injectedPodWith(t).Spec.InitContainers[0]) {
		bodies = append(bodies, reviewOf(string(fixture.JSON(t, pod))))
	}
	debug.FreeOSMemory()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	var answered, decided, most atomic.Uint64
	ctx, cancel := context.WithTimeout(t.Context(), hostileSeconds*time.Second)
	defer cancel()
	var attacks sync.WaitGroup
	for i := range 64 {
		attacks.Go(func() {
			random := rand.New(rand.NewSource(int64(i)))
			for ctx.Err() == nil {
				response := asked(handler, fmt.Sprintf("192.0.2.%d", i%8), bodies[random.Intn(len(bodies))])
				if answered.Add(1); response.Code == http.StatusOK {
					decided.Add(1)
				}
			}
		})
	}
	_ = wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) {
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		most.Store(max(most.Load(), now.Sys-now.HeapReleased))
		return false, nil
	})
	attacks.Wait()
	t.Logf("%d requests, %d of them decided; at most %d MiB, %d before", answered.Load(), decided.Load(), most.Load()>>20, (before.Sys-before.HeapReleased)>>20)
	if most.Load() > limit+before.Sys-before.HeapReleased {
		t.Errorf("%d MiB were taken, expected at most %d", most.Load()>>20, (limit+before.Sys-before.HeapReleased)>>20)
	}
	if decided.Load() == 0 {
		t.Error("nothing was decided")
	}
}
