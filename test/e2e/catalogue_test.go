// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers/catalogue"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// The profiles are for namespaces with a label that only this test sets. So the namespaces of other tests do not get them.
func TestTheChartBringsTheCatalogueAndLeavesItBehind(t *testing.T) {
	chart := environment.Chart(shared.Repository)
	t.Cleanup(func() { // this cleanup runs after the cleanup of restoreChart, or the operator would create them again
		if err := shared.client.DeleteAllOf(timeoutContext(t, time.Minute), &v1alpha1.ClusterCryptoProfile{}, client.MatchingLabels{v1alpha1.CatalogueLabel: v1alpha1.CatalogueLabelValue}); err != nil {
			t.Errorf("removing the catalogue: %v", err)
		}
	})
	restoreChart(t)
	// propagation=kubelet is an independent setting. It is tested here to save another installation.
	_, err := shared.helm.Install(t.Context(), chart, &shared.Images, "catalogue.enabled=true", "catalogue.namespaces=catalogue=wanted", "propagation=kubelet")
	must(t, err)
	namespace := newNamespace(t, map[string]string{"catalogue": "wanted"})
	// A pod that was created before its set waits for the kubelet, which may take a minute and a half.
	awaitCatalogue(t, func(*v1alpha1.ClusterCryptoProfile) error { return nil })
	profilesConfigMap(t, namespace)
	pod := createPod(t, appPod(namespace, inject("true"), nil))
	if found := awaitCalls(t, pod, statsPort, nil, 20); found.Algorithm != "sha3-512" {
		t.Errorf("found the algorithm %q, expected the algorithm of the catalogue's Default", found.Algorithm)
	}
	awaitCatalogue(t, func(p *v1alpha1.ClusterCryptoProfile) error {
		if p.Status.Namespaces != 1 || p.Status.Strength == nil || p.Status.FIPS == "" || !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionAccepted) {
			return fmt.Errorf("its status is %+v", p.Status)
		}
		return nil
	})

	t.Run("with propagation=kubelet a change annotates no pod", func(t *testing.T) {
		before := profilesConfigMap(t, namespace)
		createProfile(t, namespace, "sha-512") // replaces Default of the catalogue
		eventually(t, patience, "the changed set is written", func() error {
			if profilesConfigMap(t, namespace).ResourceVersion == before.ResourceVersion {
				return errors.New("it is not")
			}
			return nil
		})
		// With the annotation, this takes a tenth of a second.
		for began := time.Now(); time.Since(began) < 3*time.Second; <-time.After(100 * time.Millisecond) {
			must(t, shared.client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
			if value, is := pod.Annotations[contract.ProfilesDigestAnnotation]; is {
				t.Fatalf("the pod was annotated with %q", value)
			}
		}
	})

	_, err = shared.helm.Install(t.Context(), chart, &shared.Images)
	must(t, err)
	awaitCatalogue(t, func(*v1alpha1.ClusterCryptoProfile) error { return nil })
	expectNoFailure(t, pod, mustStats(t, pod))
}

// awaitCatalogue waits until each profile of the catalogue is as it should be.
func awaitCatalogue(t testing.TB, check func(*v1alpha1.ClusterCryptoProfile) error) {
	t.Helper()
	eventually(t, patience, "the catalogue is in the cluster", func() error {
		for _, name := range catalogue.Names() {
			var p v1alpha1.ClusterCryptoProfile
			if err := shared.client.Get(t.Context(), client.ObjectKey{Name: name}, &p); err != nil {
				return err
			}
			if err := check(&p); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
}
