// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"testing"

	"k8s.io/utils/ptr"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

const (
	// brokerUser is the user that the webhook gives the broker.
	brokerUser = 65532
	// socketGroup is the chart's default.
	socketGroup = 60471
	// userNamespace is the number of users and groups that the kubelet maps into the user namespace of a pod.
	userNamespace = 65536
)

func TestAPodWithAUserNamespaceOfItsOwnHasABrokerThatIsNoUserOfTheNode(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, restricted)
	profile := createProfile(t, namespace, "sha-256")
	changeSpec(t, profile, func(spec *v1alpha1.ProfileSpec) { spec.Callers = &v1alpha1.Callers{Containers: []string{"app"}} })

	ordinary := createPod(t, appPod(namespace, inject("true"), nil))
	pod := appPod(namespace, inject("true"), nil)
	pod.Spec.HostUsers = ptr.To(false)
	pod.Spec.Containers = append(pod.Spec.Containers, side(nil))
	pod = createPod(t, pod)

	t.Run("and the node runs it as a user of the pod's range", func(t *testing.T) {
		// The test checks a property that differs between the two kinds of pods.
		if found := processOf(t, ordinary, contract.BrokerContainer); found.user != brokerUser || found.firstUser != 0 {
			t.Errorf("without a user namespace of its own: found %+v, expected the user %d of the node", found, brokerUser)
		}
		for container, user := range map[string]int64{contract.BrokerContainer: brokerUser, "app": workload.AppUser, "side": workload.AppUser} {
			found := processOf(t, pod, container)
			if found.firstUser < userNamespace || found.firstUser%userNamespace != 0 {
				t.Errorf("%s: found that its users begin with %d of the node, expected a range beyond the node's own",
					container, found.firstUser)
			}
			if found.user != found.firstUser+user {
				t.Errorf("%s: found the user %d of the node, expected %d+%d", container, found.user, found.firstUser, user)
			}
			expectGroups(t, found, found.firstUser+socketGroup)
		}
	})
	t.Run("and serves the container that the profile names, as another user, and not the other", func(t *testing.T) {
		expectNoFailure(t, pod, awaitCalls(t, pod, statsPort, nil, 20))
		expectAllRefused(t, awaitErrors(t, pod, sidePort), `the profile does not allow container "side"`)
	})
	t.Run("and gets the changes of profiles", func(t *testing.T) {
		awaitAlgorithm(t, pod, "sha3-512", changeHash(t, profile, "sha3-512"), changeTimeout)
		awaitPropagated(t, profile, 2)
		expectNoFailure(t, pod, mustStats(t, pod))
	})
}
