// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package injectiontemplate

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
)

var apiServer client.WithWatch

func TestMain(m *testing.M) {
	os.Exit(apiserver.Run(m, func(admin *rest.Config) (err error) {
		scheme := runtime.NewScheme()
		if err := v1alpha1.AddToScheme(scheme); err != nil {
			return err
		}
		apiServer, err = client.NewWithWatch(admin, client.Options{Scheme: scheme})
		return err
	}))
}

// specOf returns a template with a stamp.
func specOf(stamp string) v1alpha1.InjectionTemplateSpec {
	return v1alpha1.InjectionTemplateSpec{
		Container:      apiextensionsv1.JSON{Raw: []byte(`{"name":"crypto-broker","image":"example.com/broker:1"}`)},
		Volumes:        []apiextensionsv1.JSON{{Raw: []byte(`{"name":"crypto-broker-socket","emptyDir":{"medium":"Memory"}}`)}},
		FirstArguments: []string{"--profiles-dir=/etc/crypto-broker/profiles"},
		SocketGroup:    60471,
		StatusPort:     9470,
		Stamp:          stamp,
	}
}

// start runs a reconciler until the end of the test.
func start(t *testing.T, r *Reconciler) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the reconciler ended with %v, expected nothing", err)
		}
	})
}

func await(t *testing.T, what string, name string, done func(*v1alpha1.InjectionTemplate) bool) *v1alpha1.InjectionTemplate {
	t.Helper()
	var found v1alpha1.InjectionTemplate
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		err := apiServer.Get(ctx, client.ObjectKey{Name: name}, &found)
		return err == nil && done(&found), client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v; found %+v", what, err, found)
	}
	return &found
}

func TestTheTemplateIsMadeFollowedAndPutBack(t *testing.T) {
	const name = "followed"
	var stamp atomic.Value
	stamp.Store("1/a")
	k := New(apiServer, name, func(context.Context) (v1alpha1.InjectionTemplateSpec, error) {
		return specOf(stamp.Load().(string)), nil
	})
	k.pause = time.Hour // the reconciler reads nothing without a reason
	start(t, k)
	first := await(t, "the template", name, func(found *v1alpha1.InjectionTemplate) bool { return found.Spec.Stamp == "1/a" })
	if got := string(first.Spec.Container.Raw); got != `{"image":"example.com/broker:1","name":"crypto-broker"}` {
		t.Errorf("found the container %s", got)
	}

	stamp.Store("2/b")
	k.Changed()
	second := await(t, "the changed template", name, func(found *v1alpha1.InjectionTemplate) bool { return found.Spec.Stamp == "2/b" })

	changed := second.DeepCopy()
	changed.Spec.SocketGroup = 1
	if err := apiServer.Update(t.Context(), changed, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	put := await(t, "the template to be put back", name, func(found *v1alpha1.InjectionTemplate) bool { return found.Spec.SocketGroup == 60471 })

	// An apply that changes nothing writes nothing.
	for range 3 {
		if _, err := k.apply(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	again := await(t, "the template", name, func(*v1alpha1.InjectionTemplate) bool { return true })
	if again.ResourceVersion != put.ResourceVersion {
		t.Errorf("found the version %s after three more looks, expected %s", again.ResourceVersion, put.ResourceVersion)
	}

	if err := apiServer.Delete(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	await(t, "the deleted template", name, func(found *v1alpha1.InjectionTemplate) bool { return found.UID != again.UID })
}

func TestATemplateThatCannotBeRenderedIsTriedAgainAndTheOneBeforeStays(t *testing.T) {
	const name = "tried"
	var failing atomic.Bool
	var tries atomic.Int32
	k := New(apiServer, name, func(context.Context) (v1alpha1.InjectionTemplateSpec, error) {
		if failing.Load() {
			tries.Add(1)
			return v1alpha1.InjectionTemplateSpec{}, errors.New("no keys")
		}
		return specOf("1/a"), nil
	})
	start(t, k)
	before := await(t, "the template", name, func(*v1alpha1.InjectionTemplate) bool { return true })
	failing.Store(true)
	k.Changed()
	after := await(t, "two failures", name, func(*v1alpha1.InjectionTemplate) bool { return tries.Load() >= 2 })
	if after.ResourceVersion != before.ResourceVersion {
		t.Error("found a changed template, expected the one before")
	}
}
