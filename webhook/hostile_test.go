// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
	"github.com/crypto-broker/crypto-broker-operator/webhook/shares"
)

// podHandler returns the handler for pods, as Register builds it.
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

// asked returns the answer to a body from an address.
func asked(handler http.Handler, address string, body []byte) *httptest.ResponseRecorder {
	request := httptest.NewRequestWithContext(context.Background(), http.MethodPost, podPath, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.RemoteAddr = address + ":1"
	response := &withDeadlines{httptest.NewRecorder()}
	handler.ServeHTTP(response, request)
	return response.ResponseRecorder
}

// withDeadlines accepts deadlines and ignores them, because nothing here is slow.
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
	for path, pod := range found { // every pod asks for a broker
		if strings.HasPrefix(path, ".metadata.") {
			pod = strings.Replace(pod, `{"metadata":{`, `{"metadata":{"annotations":{"cryptobroker.io/inject":"true"},`, 1)
		} else {
			pod = strings.Replace(pod, "{", `{"metadata":{"annotations":{"cryptobroker.io/inject":"true"}},`, 1)
		}
		found[path] = pod
	}
	return found
}

// overall is the maximum ratio of all allocations of a request, garbage included, to its estimate. Without the race detector, which
// allocates more, the ratio is four.
const overall = 8

// FuzzReview looks for a request that crashes the webhook or costs more than its estimate. The seeds run with every test; "go test
// ./webhook -fuzz FuzzReview" looks for more.
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
		// A part of the text is repeated many times, so that multiplied costs become visible.
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
