// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

// withdrawn is the result of a rollout that ended because its change was reverted. The other
// results are the phases.
const withdrawn = "withdrawn"

// recordChange writes an audit record when a rollout began, took a step, waits or ended.
func (r *reconciler) recordChange(o object, before, now *v1alpha1.RolloutStatus) {
	kind := downgrade.KindNamespaced
	if o.GetNamespace() == "" {
		kind = downgrade.KindCluster
	}
	event := func(result string, of *v1alpha1.RolloutStatus) *audit.Event {
		return audit.NewEvent("rollout").Text("result", result).Text("k8s.namespace.name", o.GetNamespace()).
			Text("object.kind", kind).Text("object.name", o.GetName()).
			Text("rollout.attempt", of.Attempt).Text("profile.digest", of.Digest).Number("rollout.step", int64(of.Step)).Number("rollout.weight", int64(of.Weight))
	}
	switch {
	case now == nil && before != nil && before.Phase != v1alpha1.RolloutComplete:
		r.audit.AddEvent(event(withdrawn, before).Text("reason", "the change was taken back, or replaces nothing any more"))
	case now != nil && isNews(before, now):
		r.audit.AddEvent(event(strings.ToLower(now.Phase), now).Text("reason", now.Message))
	}
}

// isNews reports whether a rollout began, took a step, waits or ended.
func isNews(before, now *v1alpha1.RolloutStatus) bool {
	return before == nil || before.Attempt != now.Attempt || before.Phase != now.Phase || before.Step != now.Step
}
