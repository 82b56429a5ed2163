// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// manyProfiles is the number of profiles of a tenant. Their set has a third of the maximum size.
const manyProfiles = 1000

// namespaceWithManyProfiles makes a namespace with many profiles, and its set.
func namespaceWithManyProfiles(t *testing.T) (namespace string, profiles []v1alpha1.CryptoProfile) {
	t.Helper()
	namespace = newNamespace(t, nil, nil)
	for i := range manyProfiles {
		profiles = append(profiles, *fixture.ProfileNamed(fmt.Sprintf("profile-%d", i), func(p *v1alpha1.CryptoProfile) {
			p.Namespace, p.CreationTimestamp = namespace, metav1.Time{}
			p.Spec.Callers = &v1alpha1.Callers{}
			for c := range 15 {
				p.Spec.Callers.Containers = append(p.Spec.Callers.Containers, callerName(c))
			}
		}))
	}
	begin := time.Now()
	atOnce(t, 20, profiles, func(ctx context.Context, p *v1alpha1.CryptoProfile) error { return admin.Create(ctx, p) })
	t.Logf("%d profiles were created in %s", len(profiles), time.Since(begin).Round(time.Millisecond))

	set := fixture.SetIn(namespace, string(render.Effective(profiles, nil, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}).Data))
	if err := admin.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	t.Logf("their set has %d bytes", len(set.Data[profile.FileName]))
	return namespace, profiles
}

func callerName(i int) string { return fmt.Sprintf("a-container-with-a-rather-long-name-%d", i) }

// atOnce applies a function to all objects, several at a time.
func atOnce[T any](t *testing.T, workers int, objects []T, do func(context.Context, *T) error) {
	t.Helper()
	next := make(chan *T)
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			for object := range next {
				if err := do(t.Context(), object); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range objects {
		next <- &objects[i]
	}
	close(next)
	working.Wait()
}

// If the work grew with the square of the number of profiles, this would take minutes.
func TestManyProfilesAreDeletedInSeconds(t *testing.T) {
	startOperator(t)
	_, profiles := namespaceWithManyProfiles(t)
	begin := time.Now()
	atOnce(t, 20, profiles, func(ctx context.Context, p *v1alpha1.CryptoProfile) error { return admin.Delete(ctx, p) })
	took := time.Since(begin)
	t.Logf("%d profiles were deleted in %s", len(profiles), took.Round(time.Millisecond))
	if took > time.Minute {
		t.Errorf("to delete %d profiles took %s", len(profiles), took)
	}
}

// A tenant keeps the operator as busy as it can, with a hundred simultaneous changes in a namespace with many profiles. The API
// server shares the processors with this test, and its own work delays others, too. So the test compares with changes for which the
// webhook does no work.
func TestThePodsOfOthersDoNotWaitForATenantsProfiles(t *testing.T) {
	startOperator(t)
	other := newNamespace(t, nil, nil)
	_, profiles := namespaceWithManyProfiles(t)
	besideNothing := podTimes(t, other)
	besideLabels := podsBeside(t, other, profiles, func(n int) string { return fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, n) })
	besideChanges := podsBeside(t, other, profiles, func(n int) string {
		return fmt.Sprintf(`{"spec":{"callers":{"containers":[%q]}}}`, callerName(n%15))
	})
	for what, times := range map[string][]time.Duration{"nothing": besideNothing, "changes of labels": besideLabels, "changes of profiles": besideChanges} {
		t.Logf("beside %s pods were created within %s at the median and %s at the 99th percentile", what, times[len(times)/2], times[len(times)*99/100])
	}
	if most := 5*besideLabels[len(besideLabels)/2] + time.Second; besideChanges[len(besideChanges)/2] > most {
		t.Errorf("beside changes of profiles a pod took more than %s at the median", most)
	}
}

// podsBeside returns podTimes while a hundred dry runs of changes run at the same time.
func podsBeside(t *testing.T, namespace string, profiles []v1alpha1.CryptoProfile, change func(n int) string) []time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var noise sync.WaitGroup
	defer noise.Wait()
	defer cancel()
	var changes atomic.Int64
	for i := range 100 {
		noise.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				p := profiles[(i*97+n)%len(profiles)].DeepCopy()
				// On a slow machine some of the changes time out.
				if admin.Patch(ctx, p, client.RawPatch("application/merge-patch+json", []byte(change(n))), client.DryRunAll) == nil {
					changes.Add(1)
				}
			}
		})
	}
	eventually(t, "the tenant's changes are under way", func() error {
		if changes.Load() < 100 {
			return errors.New("fewer than a hundred")
		}
		return nil
	})
	return podTimes(t, namespace)
}

// podTimes creates pods one after the other, and returns the time of each, sorted.
func podTimes(t *testing.T, namespace string) []time.Duration {
	t.Helper()
	times := make([]time.Duration, 40)
	for i := range times {
		begin := time.Now()
		if _, err := tryPod(t, namespace, fixture.PodWith()); err != nil {
			t.Fatal(err)
		}
		times[i] = time.Since(begin).Round(100 * time.Microsecond)
	}
	slices.Sort(times)
	return times
}
