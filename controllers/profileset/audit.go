// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
)

// recordWritten writes audit records of a replaced set, and of the profiles that became weaker.
// data is the new profile file, or nil if there is none.
func (r *reconciler) recordWritten(from sources, set guarded, revision int64, data []byte) {
	if r.audit == nil {
		return
	}
	var before, after string
	if from.found != nil {
		if file, ok := from.found.Data[profile.FileName]; ok {
			before = profile.Digest([]byte(file))
		}
	}
	if data != nil {
		after = profile.Digest(data)
	}
	if before != after {
		event := audit.NewEvent("profiles").Text("k8s.namespace.name", from.namespace.Name).
			Text("profiles.digest.before", before).Text("profiles.digest", after)
		if data != nil {
			event.Number("profiles.count", int64(len(set.Names))).Number("profiles.revision", revision)
		}
		r.audit.AddEvent(event)
	}
	for _, change := range set.allowed {
		r.recordDowngrade(from.namespace, "allowed", change)
	}
}

// recordWithheld writes audit records of newly withheld changes. A new leader does not know which
// were withheld before, and writes records of all.
func (r *reconciler) recordWithheld(namespace *corev1.Namespace, before *state.Decision, now state.Decision) {
	for _, change := range now.Withheld {
		same := func(c downgrade.Change) bool { return c.Digest == change.Digest }
		if before == nil || !slices.ContainsFunc(before.Withheld, same) {
			r.recordDowngrade(namespace, "withheld", change)
		}
	}
}

func (r *reconciler) recordDowngrade(namespace *corev1.Namespace, result string, change downgrade.Change) {
	r.audit.AddEvent(audit.NewEvent("downgrade").Text("result", result).Text("k8s.namespace.name", namespace.Name).
		Text("profile", change.Profile).Text("object.kind", change.Source.Kind).Text("object.name", change.Source.Name).
		Text("allow_weaker", change.Digest).Text("reason", strings.Join(change.Sentences(), " ")))
}
