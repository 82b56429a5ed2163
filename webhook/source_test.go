// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// The cache is empty, as if all objects were created at once.
func TestWhatTheCacheDoesNotHaveIsReadFromTheAPIServer(t *testing.T) {
	server := apiServerWith(t, fixture.Namespace("labelled", fixture.Enabled), fixture.ProfilesIn("labelled"))
	response := injectorWith(t, apiServerWith(t), server).Handle(t.Context(), creation(t, fixture.PodWith(), "labelled"))
	if snapshot := snapshotIn(t, response); snapshot != fixture.ProfilesOfShop {
		t.Errorf("the snapshot is %q, expected the snapshot of the API server: %v", snapshot, response.Result)
	}
}

func TestWhatTheCacheHasIsNotReadFromTheAPIServer(t *testing.T) {
	for sentence, pod := range map[string]struct {
		*corev1.Pod
		namespace string
	}{
		"of a pod that asks":                    {fixture.PodWith(), "shop"},
		"of a pod that declines":                {fixture.PodWith(fixture.Asking("false")), "shop"},
		"of a pod that is unsure":               {fixture.PodWith(fixture.Asking("yes")), "shop"},
		"of a pod whose namespace asks for all": {fixture.Silent(), "labelled"},
	} {
		t.Run(sentence, func(t *testing.T) {
			cache := apiServerWith(t, fixture.Namespace("shop", nil), fixture.ProfilesIn("shop"), fixture.Namespace("labelled", fixture.Enabled), fixture.ProfilesIn("labelled"))
			live := interceptor.NewClient(apiServerWith(t), interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
					t.Errorf("%s was read from the API server", key)
					return errors.New("not here")
				},
			})
			injectorWith(t, cache, live).Handle(t.Context(), creation(t, pod.Pod, pod.namespace))
		})
	}
}

// The API server would not have sent the pod if the namespace had no label.
func TestAPodOfANamespaceThatWasLabelledJustNowGetsItsBroker(t *testing.T) {
	cache := apiServerWith(t, fixture.Namespace("shop", nil), fixture.ProfilesIn("shop"))
	response := injectorWith(t, cache, apiServerWith(t, fixture.Namespace("shop", fixture.Enabled))).Handle(t.Context(), creation(t, fixture.Silent(), "shop"))
	if snapshot := snapshotIn(t, response); snapshot != fixture.ProfilesOfShop {
		t.Errorf("the patch is %v, expected a broker with its profiles", response.Patches)
	}
}

func TestReadsThatFail(t *testing.T) {
	failing := func(object client.Object) client.Reader {
		return interceptor.NewClient(apiServerWith(t, fixture.Namespace("shop", nil), fixture.ProfilesIn("shop")), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
				if _, same := into.(*corev1.Namespace); same == (object.GetName() == "namespace") {
					return errors.New("etcd is away")
				}
				return c.Get(ctx, key, into, options...)
			},
		})
	}
	t.Run("of the namespace refuse the pod", func(t *testing.T) {
		reader := failing(fixture.Namespace("namespace", nil))
		response := injectorWith(t, reader, reader).Handle(t.Context(), creation(t, fixture.PodWith(), "shop"))
		want := `namespace "shop", whose label decides whether the pod gets a broker, could not be read: etcd is away`
		if response.Allowed || response.Result.Code != http.StatusInternalServerError || response.Result.Message != want {
			t.Errorf("answered %v, expected 500 %q", response.Result, want)
		}
	})
	t.Run("of the namespace from the API server refuse a pod that nobody but its label sent", func(t *testing.T) {
		response := injectorWith(t, apiServerWith(t, fixture.Namespace("shop", nil)), failing(fixture.Namespace("namespace", nil))).Handle(t.Context(), creation(t, fixture.Silent(), "shop"))
		if response.Allowed || response.Result.Code != http.StatusInternalServerError {
			t.Errorf("answered %v, expected 500", response.Result)
		}
	})
	t.Run("of a namespace that is gone refuse the pod", func(t *testing.T) {
		server := apiServerWith(t)
		response := injectorWith(t, server, server).Handle(t.Context(), creation(t, fixture.PodWith(), "shop"))
		want := `namespace "shop", whose label decides whether the pod gets a broker, could not be read: it does not exist`
		if response.Allowed || response.Result.Message != want {
			t.Errorf("answered %v, expected %q", response.Result, want)
		}
	})
	t.Run("of the profiles leave out the snapshot", func(t *testing.T) {
		reader := failing(fixture.ProfilesIn("shop"))
		response := injectorWith(t, reader, reader).Handle(t.Context(), creation(t, fixture.PodWith(), "shop"))
		if snapshot := snapshotIn(t, response); snapshot != "" {
			t.Errorf("found the snapshot %q, expected none", snapshot)
		}
		want := []string{`the profiles of namespace "shop" could not be read now: the pod gets them a little later`}
		if !slices.Equal(response.Warnings, want) {
			t.Errorf("warned %q, expected %q", response.Warnings, want)
		}
	})
}

// The test runs in a synctest bubble with fake time, so waiting takes no real time.
func TestReadsThatTakeTooLong(t *testing.T) {
	stuck := func(t *testing.T) client.Reader {
		return interceptor.NewClient(apiServerWith(t), interceptor.Funcs{
			Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
				<-ctx.Done()
				return ctx.Err()
			},
		})
	}
	t.Run("from the cache are made from the API server", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			server := apiServerWith(t, fixture.Namespace("shop", nil), fixture.ProfilesIn("shop"))
			response := injectorWith(t, stuck(t), server).Handle(t.Context(), creation(t, fixture.PodWith(), "shop"))
			if snapshot := snapshotIn(t, response); snapshot != fixture.ProfilesOfShop {
				t.Errorf("the snapshot is %q: %v", snapshot, response.Result)
			}
		})
	})
	t.Run("from the API server end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			response := injectorWith(t, apiServerWith(t), stuck(t)).Handle(t.Context(), creation(t, fixture.PodWith(), "shop"))
			if response.Allowed || !strings.Contains(response.Result.Message, context.DeadlineExceeded.Error()) {
				t.Errorf("answered %v, expected a refusal that says so", response.Result)
			}
		})
	})
}

func TestReadsOfOneObjectAtTheSameTimeBecomeOne(t *testing.T) {
	const pods = 50
	for sentence, test := range map[string]struct {
		cached []client.Object
		pod    *corev1.Pod
	}{
		"of what the cache does not have":   {nil, fixture.PodWith()},
		"of what the cache has from before": {[]client.Object{fixture.Namespace("shop", nil)}, fixture.Silent()},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reads atomic.Int64
				release := make(chan struct{})
				live := interceptor.NewClient(apiServerWith(t, fixture.Namespace("shop", nil)), interceptor.Funcs{
					Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
						reads.Add(1)
						<-release
						return c.Get(ctx, key, into, options...)
					},
				})
				injector := injectorWith(t, apiServerWith(t, test.cached...), live)
				request := creation(t, test.pod, "shop")
				var running sync.WaitGroup
				for range pods {
					running.Go(func() {
						if response := injector.Handle(t.Context(), request); !response.Allowed {
							t.Error(response.Result)
						}
					})
				}
				synctest.Wait() // all wait for the namespace
				if found := reads.Load(); found != 1 {
					t.Errorf("%d pods read the namespace %d times, expected once", pods, found)
				}
				close(release)
				running.Wait()
			})
		})
	}
}
