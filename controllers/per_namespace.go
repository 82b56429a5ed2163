// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// inNamespace is what is known of a ClusterCryptoProfile in one namespace.
type inNamespace struct {
	badness int // the more, the more is wrong
	status  v1alpha1.NamespaceStatus
}

// inNamespace is about a profile with this verdict in a namespace with these
// numbers.
func (p propagator) inNamespace(name, digest string, verdict render.Verdict, s distribute.Summary) inNamespace {
	in := inNamespace{status: v1alpha1.NamespaceStatus{Name: name, State: verdict.Reason, Pods: int32(s.Pods)}}
	if !verdict.Accepted {
		in.badness = 4
		return in
	}
	c := p.propagated(s, true)
	in.status.State, in.status.Digest = c.Reason, digest
	in.status.UpdatedPods, in.status.UnverifiedPods = int32(s.Updated), int32(s.Unverified)
	switch {
	case p.degraded(s, verdict).Status == metav1.ConditionTrue:
		in.badness = 3
	case c.Status == metav1.ConditionFalse:
		in.badness = 2
	case c.Status == metav1.ConditionUnknown:
		in.badness = 1
	}
	return in
}

// worse orders namespaces: those where most is wrong, then those with most pods that
// are not updated, then by name. The order is the same however they are found.
func worse(a, b *share) int {
	return cmp.Or(
		cmp.Compare(b.badness, a.badness),
		cmp.Compare(b.status.Pods-b.status.UpdatedPods, a.status.Pods-a.status.UpdatedPods),
		cmp.Compare(a.status.Name, b.status.Name),
	)
}

// worst are the namespaces of which a status tells, the first of those in order.
func worst(ordered []*share) []v1alpha1.NamespaceStatus {
	var worst []v1alpha1.NamespaceStatus
	for _, s := range ordered[:min(len(ordered), v1alpha1.MaxPerNamespace)] {
		worst = append(worst, s.status)
	}
	return worst
}
