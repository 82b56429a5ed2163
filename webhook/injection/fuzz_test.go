// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// FuzzInject looks for a pod that Inject damages. The seeds run with every test;
// "go test ./webhook/injection -fuzz FuzzInject" looks for more.
func FuzzInject(f *testing.F) {
	for seed := range int64(100) {
		f.Add(seed)
	}
	f.Fuzz(injectARandomPod)
}

// injectARandomPod makes a pod from a seed, and fails if Inject damages the pod.
func injectARandomPod(t *testing.T, seed int64) {
	pod, random := fixture.RandomPod(seed)
	profiles := [][]byte{nil, []byte(fixture.ProfilesOfShop), make([]byte, maxSnapshotSize+1)}[random.Intn(3)]
	template := testTemplate()
	template.NamespaceUserIDs = random.Intn(4) == 0

	once, _, err := Inject(pod, "shop", profiles, template)
	var refusal *Refusal
	if errors.As(err, &refusal) {
		if len(refusal.Problems) == 0 {
			t.Error("a refusal without a reason")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if decision, err := Decide(pod, true); err != nil || !decision.Inject {
		if diff := cmp.Diff(once, pod); diff != "" {
			t.Errorf("a pod that gets no broker has changed (-after +before):\n%s", diff)
		}
		return
	}
	if diff := cmp.Diff(fixture.WithoutInjection(once, pod), pod); diff != "" {
		t.Errorf("more than the broker's own has changed (-after +before):\n%s", diff)
	}
	if patched := fixture.Patched(t, fixture.JSON(t, pod), pod, once); !fixture.EqualJSON(t, patched, fixture.JSON(t, once)) {
		t.Errorf("the patch makes %s", patched)
	}

	// The API server sends the JSON that it received, not the object in the memory of this test.
	received := &corev1.Pod{}
	if err := json.Unmarshal(fixture.JSON(t, once), received); err != nil {
		t.Fatal(err)
	}
	twice, _, err := Inject(received, "shop", profiles, template)
	if err != nil {
		t.Fatalf("the second call refused what the first made: %v", err)
	}
	if diff := cmp.Diff(received, twice); diff != "" {
		t.Errorf("the second call changed the pod (-once +twice):\n%s", diff)
	}
	expectOnlyMountAndVariable(t, pod, once)
	if _, _, err := Inject(pod, "shop", profiles, beside(template)); err == nil { // the other port may be in use
		renewed := admitted(t, admitted(t, pod, profiles, beside(template)), profiles, template)
		if diff := cmp.Diff(fixture.InNewPod(received), fixture.InNewPod(renewed), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the broker of another version was not replaced by the broker of this version (-want +found):\n%s", diff)
		}
	}
	for _, change := range []string{"the token of the service account", "a cloud identity for every container", "a proxy as a sidecar in front"} {
		between := received.DeepCopy()
		foreignChanges[change](between)
		if _, _, err := Inject(between, "shop", profiles, template); err != nil {
			t.Errorf("after %s the second call refuses the pod: %v", change, err)
		}
	}
}

// expectOnlyMountAndVariable compares each container of the app before and after, item by item.
func expectOnlyMountAndVariable(t *testing.T, before, after *corev1.Pod) {
	t.Helper()
	owned := map[string]corev1.Container{}
	each(after, func(_ string, c *corev1.Container) { owned[c.Name] = *c })
	each(before, func(place string, c *corev1.Container) {
		found := owned[c.Name]
		found.VolumeMounts = slices.DeleteFunc(slices.Clone(found.VolumeMounts), func(m corev1.VolumeMount) bool { return m.Name == contract.SocketVolume })
		if more := len(found.Env) - len(c.Env); more == 1 && found.Env[len(c.Env)].Name == "CRYPTO_BROKER_SOCKET" {
			found.Env = found.Env[:len(c.Env)]
		}
		if !equality.Semantic.DeepEqual(*c, found) {
			t.Errorf("%s: more than the mount and the variable has changed (-before +after):\n%s", place, cmp.Diff(*c, found))
		}
	})
}
