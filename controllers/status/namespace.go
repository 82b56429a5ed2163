// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// The severities of problems of a profile in a namespace.
const (
	fine = iota
	unknown
	updating
	degraded
	refused
)

// inNamespace is the state of a ClusterCryptoProfile in one namespace.
type inNamespace struct {
	severity int
	status   v1alpha1.NamespaceStatus
}

// inNamespace returns the state of a profile with this verdict in a namespace with
// these numbers of brokers.
func (c conditions) inNamespace(name, digest string, verdict render.Verdict, s distribute.Summary) inNamespace {
	in := inNamespace{status: v1alpha1.NamespaceStatus{Name: name, State: verdict.Reason, Pods: int32(s.Pods)}}
	if !verdict.Accepted {
		in.severity = refused
		return in
	}
	propagated := c.propagated(s, verdict, nil)
	in.status.State, in.status.Digest = propagated.Reason, digest
	in.status.UpdatedPods, in.status.UnverifiedPods = int32(s.Updated), int32(s.Unverified)
	switch {
	case c.degraded(s, verdict).Status == metav1.ConditionTrue:
		in.severity = degraded
	case propagated.Status == metav1.ConditionFalse:
		in.severity = updating
	case propagated.Status == metav1.ConditionUnknown:
		in.severity = unknown
	}
	return in
}

// bySeverity orders namespaces by severity, then by the number of pods that are not
// updated, both descending, then by name. The order is total.
func bySeverity(a, b *share) int {
	return cmp.Or(
		cmp.Compare(b.severity, a.severity),
		cmp.Compare(b.status.Pods-b.status.UpdatedPods, a.status.Pods-a.status.UpdatedPods),
		cmp.Compare(a.status.Name, b.status.Name),
	)
}

// listed returns the namespaces that a status lists: the first ones of an ordered list.
func listed(ordered []*share) []v1alpha1.NamespaceStatus {
	var listed []v1alpha1.NamespaceStatus
	for _, s := range ordered[:min(len(ordered), v1alpha1.MaxPerNamespace)] {
		listed = append(listed, s.status)
	}
	return listed
}
