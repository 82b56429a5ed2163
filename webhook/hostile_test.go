// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
	"github.com/crypto-broker/crypto-broker-operator/webhook/shares"
)

// podHandler is what is served for pods, as Register puts it together.
func podHandler(t testing.TB) http.Handler {
	t.Helper()
	scheme := fixture.Scheme(t)
	server := apiServerWith(t, fixture.Namespace("shop", nil), fixture.ProfilesIn("shop"))
	injector := newPodInjector(admission.NewDecoder(scheme), server, server, Options{Template: testTemplate(), OperatorNamespace: "crypto-broker-system"})
	return &bounded{
		next:   &admission.Webhook{Handler: brief(ofObjects(injector)), LogConstructor: func(logr.Logger, *admission.Request) logr.Logger { return logr.Discard() }},
		bodies: shares.New(bodyShares), work: shares.New(podShares), least: leastPod, wait: maxWait,
	}
}

// asked answers a body as one that an address sent.
func asked(handler http.Handler, address string, body []byte) *httptest.ResponseRecorder {
	request := httptest.NewRequestWithContext(context.Background(), http.MethodPost, PodPath, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.RemoteAddr = address + ":1"
	response := &withDeadlines{httptest.NewRecorder()}
	handler.ServeHTTP(response, request)
	return response.ResponseRecorder
}

// withDeadlines takes deadlines and keeps none: nothing here is slow.
type withDeadlines struct{ *httptest.ResponseRecorder }

func (withDeadlines) SetReadDeadline(time.Time) error  { return nil }
func (withDeadlines) SetWriteDeadline(time.Time) error { return nil }

// reviewOf is the request about a pod in JSON.
func reviewOf(pod string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","namespace":"shop","operation":"CREATE",`+
		`"kind":{"version":"v1","kind":"Pod"},"object":%s}}`, pod)
}

// emptyLists are pods in which one list has this many items without anything in them:
// all lists that a pod can have, in JSON.
func emptyLists(n int, item string) map[string]string {
	found := map[string]string{}
	list := "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	var walk func(of reflect.Type, path, before, after string, depth int)
	walk = func(of reflect.Type, path, before, after string, depth int) {
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if of.Kind() == reflect.Slice && of.Elem().Kind() != reflect.Uint8 {
			found[path] = before + list + after
			walk(of.Elem(), path+"[]", before+"[", "]"+after, depth+1)
		}
		if of.Kind() != reflect.Struct || depth == 8 {
			return
		}
		for i := range of.NumField() {
			field := of.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" {
				walk(field.Type, path, before, after, depth+1)
				continue
			}
			walk(field.Type, path+"."+name, before+fmt.Sprintf(`{%q:`, name), "}"+after, depth+1)
		}
	}
	walk(reflect.TypeFor[corev1.Pod](), "", "", "", 0)
	for path, pod := range found { // every one asks for a broker
		if strings.HasPrefix(path, ".metadata.") {
			pod = strings.Replace(pod, `{"metadata":{`, `{"metadata":{"annotations":{"cryptobroker.io/inject":"true"},`, 1)
		} else {
			pod = strings.Replace(pod, "{", `{"metadata":{"annotations":{"cryptobroker.io/inject":"true"}},`, 1)
		}
		found[path] = pod
	}
	return found
}

// overall is how many times its estimate a request may allocate in all, garbage
// included. It is four without the race detector, which allocates more.
const overall = 8

// Anybody who reaches the port can send what no API server would: a list of nothings
// that becomes a hundred times larger when it is read.
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

// hostileSeconds is how long the attack takes: long enough for what is kept to show.
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

// FuzzReview looks for a request that ends the webhook or costs more than it counts
// for. The seeds run with every test; "go test ./webhook -fuzz FuzzReview" looks for
// more.
func FuzzReview(f *testing.F) {
	handler := podHandler(f)
	f.Add(reviewOf("{}"), 1)
	f.Add([]byte(`{"request":{"object":{"spec":{"containers":[null`), 1000)
	for _, pod := range emptyLists(2, "null") {
		f.Add(reviewOf(pod), 500)
	}
	for seed := range int64(20) {
		pod, _ := fixture.RandomPod(seed)
		f.Add(reviewOf(string(fixture.JSON(f, pod))), 1)
	}
	f.Fuzz(func(t *testing.T, body []byte, times int) {
		// A part of the text is there many times: what multiplies shows.
		if half := len(body) / 2; times > 1 && times < 100_000 && len(body)*times < 1<<20 {
			body = bytes.Replace(body, body[half:], bytes.Repeat(body[half:], times), 1)
			body = bytes.ReplaceAll(body, []byte("null"), bytes.Repeat([]byte("null,"), min(times, 100)))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		asked(handler, "192.0.2.1", body)
		runtime.ReadMemStats(&after)
		if allocated, most := after.TotalAlloc-before.TotalAlloc, overall*uint64(max(measure(body).memory(), leastPod)); allocated > most {
			t.Errorf("%d bytes were allocated for %d bytes that were sent, expected at most %d", allocated, len(body), most)
		}
	})
}
