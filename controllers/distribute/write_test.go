// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAnAnnotationIsThePatchThatCostsTheAPIServerLeast(t *testing.T) {
	var asked *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"namespace":"shop","name":"app"}}`)
	}))
	defer server.Close()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}

	if err := annotate(t.Context(), c, types.NamespacedName{Namespace: "shop", Name: "app"}, "uid-1", "sha256:0.1"); err != nil {
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
