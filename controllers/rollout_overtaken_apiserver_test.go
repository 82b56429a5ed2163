// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package controllers_test

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

func TestARolloutThatSomethingOvertakesGoesOnFromWhatIsServed(t *testing.T) {
	start(t)
	labels := map[string]string{"rollout-of": "overtaken"}
	ns := namespace(t, labels)
	orders := hashing(ns, "orders", "sha-256")
	withSteps(orders)
	create(t, orders)
	var pods []*pod
	for range 10 {
		pods = append(pods, runPod(t, ns))
	}
	expectFile(t, ns, fileOf("orders", "sha-256"))
	expectServed(t, setIn(t, ns).Data[profile.FileName], pods...)
	update(t, orders, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-384" })
	expectRollout(t, orders, pods, v1alpha1.RolloutPaused, 20, 2, 8)
	first := orders.Status.Rollout.Attempt

	t.Run("by another change: a new rollout begins from the old profile, in the same pods", func(t *testing.T) {
		update(t, orders, func(p *v1alpha1.CryptoProfile) {
			p.Spec.API.HashData.HashAlg = "sha-512"
			p.Annotations = map[string]string{v1alpha1.PromoteAnnotation: first} // is about the first change
		})
		eventually(t, "another rollout begins", func() error {
			if err := apiServer.Get(t.Context(), client.ObjectKeyFromObject(orders), orders); err != nil {
				return err
			}
			if r := orders.Status.Rollout; r == nil || r.Attempt == first {
				return fmt.Errorf("%+v", r)
			}
			return nil
		})
		expectRollout(t, orders, pods, v1alpha1.RolloutPaused, 20, 2, 8)
	})
	for range 4 {
		pods = append(pods, runPod(t, ns))
	}
	t.Run("by pods that come: they take a side, and the step counts them", func(t *testing.T) {
		new := 0
		for _, p := range pods {
			if profile.RolloutPlace(string(p.object.UID), "orders") < orders.Status.Rollout.Below {
				new++
			}
		}
		expectRollout(t, orders, pods, v1alpha1.RolloutPaused, 20, new, len(pods)-new)
	})
	t.Run("by a profile of the cluster with its name, which all pods serve at once", func(t *testing.T) {
		cluster := clusterHashing("orders", "sha3-512", labels)
		create(t, cluster)
		expectFile(t, ns, fileOf("orders", "sha3-512"))
		expectServed(t, setIn(t, ns).Data[profile.FileName], pods...)
	})
}
