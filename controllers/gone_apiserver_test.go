// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package controllers_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/statuspatch"
)

func TestAPodThatIsReplacedWhileItsAnnotationIsWrittenIsNoFailure(t *testing.T) {
	in := namespace(t, nil)
	orders := hashing(in, "orders", "sha-256")
	create(t, orders)
	var armed atomic.Bool
	answered := make(chan int, 1) // the API server's answer to the annotation of the replaced pod
	access := rest.CopyConfig(operatorConfig)
	access.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(q *http.Request) (*http.Response, error) {
			annotates := q.Method == http.MethodPatch && strings.Contains(q.URL.Path, "/namespaces/"+in+"/pods/")
			if !annotates || !armed.CompareAndSwap(true, false) {
				return next.RoundTrip(q)
			}
			replace(t, client.ObjectKey{Namespace: in, Name: "app"})
			response, err := next.RoundTrip(q)
			if err == nil {
				answered <- response.StatusCode
			}
			return response, err
		})
	})
	startAs(t, access)
	expectFile(t, in, fileOf("orders", "sha-256"))
	pod := runPod(t, in, func(p *pod) { p.object.GenerateName, p.object.Name = "", "app" })
	expectServed(t, fileOf("orders", "sha-256"), pod)
	expectStatus(t, orders, has{accepted: "True Valid", propagated: "True AllUpdated", pods: 1, updated: 1})

	done, failed := reconciliations(t, "pod-annotation"), counter(t, "controller_runtime_reconcile_errors_total", "pod-annotation")
	armed.Store(true)
	update(t, orders, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-512" })
	select {
	case found := <-answered:
		if found != http.StatusUnprocessableEntity {
			t.Errorf("found HTTP status %d for another pod of the name, expected %d", found, http.StatusUnprocessableEntity)
		}
	case <-time.After(patience):
		t.Fatal("the pod was not annotated")
	}
	eventually(t, "the annotation is given up", func() error {
		if reconciliations(t, "pod-annotation") == done {
			return errors.New("not yet")
		}
		return nil
	})
	if found := counter(t, "controller_runtime_reconcile_errors_total", "pod-annotation") - failed; found > 0 {
		t.Errorf("found %g failures, expected none", found)
	}
}

// replace replaces a pod with another one of the same name.
func replace(t *testing.T, name client.ObjectKey) {
	old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	if err := apiServer.Delete(t.Context(), old, client.GracePeriodSeconds(0)); err != nil {
		t.Error(err)
	}
	another := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "registry.example/app"}}},
	}
	if err := apiServer.Create(t.Context(), another); err != nil {
		t.Error(err)
	}
}

func TestAPatchForAnObjectThatIsGoneIsNoFailureIfAnotherOneHasItsName(t *testing.T) {
	in := namespace(t, nil)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "app"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "registry.example/app"}}},
	}
	create(t, pod)

	patch := client.RawPatch(types.StrategicMergePatchType, []byte(`{"metadata":{"uid":"of-the-pod-before","annotations":{"a":"b"}}}`))
	if err := apiServer.Status().Patch(t.Context(), pod.DeepCopy(), patch); !statuspatch.IsGone(err) {
		t.Errorf("found %v for another pod of the name, expected that the first one is gone", err)
	}
	patch = client.RawPatch(types.StrategicMergePatchType, []byte(`{"metadata":{"finalizers":["no name"]}}`))
	if err := apiServer.Status().Patch(t.Context(), pod.DeepCopy(), patch); err == nil || statuspatch.IsGone(err) {
		t.Errorf("found %v for an invalid patch, expected a failure", err)
	}
}
