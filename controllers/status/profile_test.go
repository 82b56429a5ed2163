// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

func TestNumbersAreWrittenAFewAtATimeAndDelayNoOtherStatus(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var written []string
	r := &profileReconciler{
		memory:   newMemory(true),
		reporter: &reporter{recorder: events.NewFakeRecorder(1000)},
		client: interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
			SubResourcePatch: func(_ context.Context, _ client.Client, _ string, object client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
				written = append(written, object.GetName())
				return nil
			},
		}),
	}
	status := &v1alpha1.ProfileStatus{}
	for _, condition := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionPropagated} {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNoPods})
	}
	profile := func(name string, numbersSince time.Time) pending {
		return pending{&v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}, status, numbersSince}
	}
	begin := time.Now()
	due := []pending{profile("changed", time.Time{}), profile("longest", begin.Add(-time.Hour))}
	for i := range 500 {
		due = append(due, profile(fmt.Sprint(i), begin))
	}
	slices.Reverse(due)
	write := func(due []pending) time.Duration {
		t.Helper()
		later, err := r.write(t.Context(), "shop", due, common{})
		if err != nil {
			t.Fatal(err)
		}
		return later
	}

	later := write(due)
	if later <= 0 || later > numbersPeriod {
		t.Errorf("goes on after %s, expected at most %s", later, numbersPeriod)
	}
	if len(written) != 1+maxNumbers || !slices.Equal(written[:2], []string{"changed", "longest"}) {
		t.Errorf("found %d statuses written, %q; expected the changed one, the one that differs for the longest time, and %d in all for numbers", len(written), written, maxNumbers)
	}
	written = nil
	if later := write(due[2:300]); later <= 0 || later > numbersPeriod || len(written) != 0 {
		t.Errorf("at once, found %d more statuses written and going on after %s", len(written), later)
	}
	if later := write([]pending{profile("another", time.Time{})}); later != 0 || !slices.Equal(written, []string{"another"}) {
		t.Errorf("found %q written and going on after %s, expected another change to be written", written, later)
	}
}

func TestAVerdictOnAnObjectSaysNothingOfALaterOneOfItsName(t *testing.T) {
	p := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "1", Generation: 1}}
	decided := &state.Decision{Namespaced: map[string]render.Verdict{"orders": {Version: render.VersionOf(p), Accepted: true}}}
	if _, judged := verdictOn(p, decided); !judged {
		t.Error("found no verdict on the object that the decision is about")
	}
	p.UID = "2"
	if verdict, judged := verdictOn(p, decided); judged {
		t.Errorf("found %+v for an object that was created after the decision", verdict)
	}
}
