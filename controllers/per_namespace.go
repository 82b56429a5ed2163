// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"slices"

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

// worst are the namespaces of which a status tells: those where most is wrong,
// then those with most pods that are not updated, then by name. They are in this
// order, which is the same however they are found.
func (all everywhere) worst() []v1alpha1.NamespaceStatus {
	slices.SortFunc(all.each, func(a, b inNamespace) int {
		return cmp.Or(
			cmp.Compare(b.badness, a.badness),
			cmp.Compare(b.status.Pods-b.status.UpdatedPods, a.status.Pods-a.status.UpdatedPods),
			cmp.Compare(a.status.Name, b.status.Name),
		)
	})
	var worst []v1alpha1.NamespaceStatus
	for _, in := range all.each[:min(len(all.each), v1alpha1.MaxPerNamespace)] {
		worst = append(worst, in.status)
	}
	return worst
}
