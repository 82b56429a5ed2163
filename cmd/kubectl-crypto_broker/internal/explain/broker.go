// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/text"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/workload"
)

// explainBroker prints the state of the broker in a pod. If the broker does not serve the set of
// its namespace, so describes what it does instead, and advice is the advice to the user. Both
// are empty if the broker serves the set, or if that is not known. restart is the sentence about
// how to replace the pod.
func explainBroker(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, namespaceLabels map[string]string, restart string, e *explanation) (so, advice string) {
	e.add("broker", "image %s, injected by %s", injected.Broker(pod).Image, cmp.Or(pod.Annotations[contract.InjectedAnnotation], "an unknown operator, because the pod has no stamp"))
	switch {
	case workload.Ended(pod):
		return "", ""
	case !brokers.Started(pod):
		return "which has not started yet", explainStart(ctx, client, pod, namespaceLabels, e)
	}
	var r brokers.Row
	sets := brokers.NewSets(client)
	brokers.Served(ctx, client, pod, &r, sets)
	log := fmt.Sprintf("Its log says why: kubectl logs %s -n %s -c %s", pod.Name, pod.Namespace, contract.BrokerContainer)
	switch {
	case r.Reason != string(directory.SignatureRejected) && sets.BaselineMissing(ctx, pod.Namespace):
		return "which gets no new profiles", explainBaseline(ctx, client, pod.Namespace, namespaceLabels, e)
	case r.Set == brokers.SetUnknown:
		e.add("profiles", "what it serves is not known: %s", r.Note)
	case r.Reason == string(directory.SignatureRejected):
		e.add("profiles", "it refuses the set of the namespace, because no key that the broker trusts has signed it (%s), and serves the previous one", r.Reason)
		return "which refuses the profiles of its namespace", fmt.Sprintf(
			"The operator signs with another key than when the pod was created, as after its Secret was deleted. New pods trust that key. %s\n"+
				"To restart all such workloads, one at a time: %s restart --refused -n %s", restart, text.Plugin, pod.Namespace)
	case r.Set == brokers.SetRefused:
		e.add("profiles", "it refuses the set of the namespace (%s), and serves the previous one", r.Reason)
		return "which refuses the profiles of its namespace", log
	case r.Set == brokers.SetPartial:
		e.add("profiles", "it serves the set of the namespace without some profiles that it can't read (%s)", r.Reason)
		return "which does not serve all profiles of its namespace", log
	case r.Set == brokers.SetBehind:
		e.add("profiles", "it serves an older set than the namespace has (%s)", cmp.Or(r.Reason, "no reason given"))
		return "which serves an older set of profiles", fmt.Sprintf("It should serve the newer set within a minute or two; if it does not, the condition Propagated says more: kubectl describe cprof,ccprof -n %s", pod.Namespace)
	default:
		e.add("profiles", "it serves the set of the namespace, %s", text.ShortDigest(r.Digest))
	}
	if _, configured := contract.ArgumentOf(injected.Broker(pod).Args, contract.KeyGatewayFlag); !configured && sets.WithKeyGateway(ctx, pod.Namespace) {
		e.add("keys", "it cannot call the key gateway, because the pod is older than the first key of a key provider in the profiles of the namespace")
		return "which cannot use the keys of key providers", restart
	}
	return "", ""
}
