// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

func TestAnAnnotationIsThePatchThatCostsTheAPIServerLeast(t *testing.T) {
	var asked *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
		_, _ = io.WriteString(w, "what nobody decodes")
	}))
	defer server.Close()
	pods, err := podClient(&rest.Config{Host: server.URL}, scheme.Scheme, server.Client())
	if err != nil {
		t.Fatal(err)
	}

	if err := annotate(t.Context(), pods, types.NamespacedName{Namespace: "shop", Name: "app"}, "uid-1", "sha256:0.1"); err != nil {
		t.Fatal(err)
	}
	if asked.Method != http.MethodPatch || asked.URL.Path != "/api/v1/namespaces/shop/pods/app/status" {
		t.Errorf("found %s %s, expected a patch of the pod's status", asked.Method, asked.URL.Path)
	}
	if found := asked.Header.Get("Content-Type"); found != string(types.StrategicMergePatchType) {
		t.Errorf("found the patch %s, for which the API server writes the pod as JSON and reads it again", found)
	}
	if found := asked.URL.Query().Get("fieldValidation"); found != "Ignore" {
		t.Errorf("found the field validation %q, expected Ignore", found)
	}
	if found := asked.URL.Query().Get("fieldManager"); found != v1alpha1.FieldManager {
		t.Errorf("found the field manager %q, expected %s", found, v1alpha1.FieldManager)
	}
	if found := asked.Header.Get("Accept"); !strings.Contains(found, "as=PartialObjectMetadata") {
		t.Errorf("found %q, expected that the API server returns the metadata alone", found)
	}
	var found map[string]any
	if err := json.Unmarshal(body, &found); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"metadata": map[string]any{
		"uid": "uid-1",
		"annotations": map[string]any{
			"cryptobroker.io/profiles-digest":             "sha256:0.1",
			"cryptobroker.io/profiles-snapshot":           nil,
			"cryptobroker.io/profiles-snapshot-signature": nil,
		},
	}}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("found the patch %s, expected %v", body, want)
	}
}

func TestAnAnnotationThatTheAPIServerGivesUpIsWrittenAgain(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"the object has been modified"}`)
	}))
	defer server.Close()
	pods, err := podClient(&rest.Config{Host: server.URL}, scheme.Scheme, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	pod := injectedPod(func(p *corev1.Pod) { p.ManagedFields, p.Status.PodIP = nil, "" })
	d := distributorOf(fake.NewClientBuilder().WithObjects(pod).Build())
	d.pods, d.options.Annotate = pods, true
	if err := d.SetTarget(t.Context(), pod.Namespace, Target{Digest: "sha256:11"}); err != nil {
		t.Fatal(err)
	}
	_, err = d.write(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod)})
	if !apierrors.IsConflict(err) {
		t.Errorf("found %v, expected the conflict, so that the queue tries again", err)
	}
}

// A request to a broker takes processor time that annotations need. And it does not make the end of a change of many pods known any
// earlier.
func TestABrokerIsAskedLaterWhileManyAnnotationsWait(t *testing.T) {
	d := distributorOf(fake.NewClientBuilder().Build())
	for i := range crowd {
		d.writing.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: fmt.Sprint(i)}})
	}
	if found := d.untilQuestion(); found != firstDelay {
		t.Errorf("with %d annotations the first question is after %s, expected %s", crowd, found, firstDelay)
	}
	d.writing.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "one more"}})
	if found := d.untilQuestion(); found != crowdDelay {
		t.Errorf("with more than %d annotations the first question is after %s, expected %s", crowd, found, crowdDelay)
	}
}
