// SPDX-License-Identifier: Apache-2.0

package effective

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// States of an object in a namespace's set. Further states are the reasons of the condition
// Accepted in lower case, such as conflict and invalid.
const (
	// StateServed means that the set has the profile as the object describes it.
	StateServed = "served"
	// StateWithheld means that the profile is weaker than what was served, and is not
	// served.
	StateWithheld = "withheld"
	// StateRollingOut means that the profile reaches brokers step by step, and has not reached
	// all of them.
	StateRollingOut = "rolling out"
	// StatePending means that the operator has not written the profile yet.
	StatePending = "pending"
	// StateWithoutObject means that the set has the profile, and no object describes it.
	StateWithoutObject = "without object"
)

// Row is an object that applies to a namespace, or a profile that is served without an object.
type Row struct {
	// Profile is the name that applications use.
	Profile string `json:"profile"`
	// From is the object, as kubectl names it: cprof/orders, ccprof/baseline.
	From  string `json:"from,omitempty"`
	State string `json:"state"`
	// Strength is the strength in bits from the status, or 0 if it is not known.
	Strength int32 `json:"strength,omitempty"`
	// Pods and UpdatedPods are the operator's numbers for the namespace, or nil if there are
	// none.
	Pods        *int32 `json:"pods,omitempty"`
	UpdatedPods *int32 `json:"updatedPods,omitempty"`
	// Why says why the profile is not served.
	Why string `json:"why,omitempty"`
}

// Rows returns all objects that apply to the namespace, and profiles that are served without an
// object, in the order of profile names. The object that takes effect comes first.
func (s *Set) Rows() (rows []Row) {
	described := map[string]bool{}
	for i := range s.Namespaced {
		p := &s.Namespaced[i]
		r := Row{Profile: render.Name(p.Name, &p.Spec), From: "cprof/" + p.Name}
		if p.Status.Digest != "" {
			r.Pods, r.UpdatedPods = &p.Status.Pods, &p.Status.UpdatedPods
		}
		s.fill(&r, downgrade.Source{Kind: downgrade.KindNamespaced, Namespace: p.Namespace, Name: p.Name}, p, &p.Spec, &p.Status, s.Rendered.Namespaced)
		rows = append(rows, r)
	}
	for i := range s.Cluster {
		p := &s.Cluster[i]
		if !render.Selects(&p.Spec, s.Namespace.Labels) {
			continue
		}
		r := Row{Profile: render.Name(p.Name, &p.Spec.ProfileSpec), From: "ccprof/" + p.Name}
		for j := range p.Status.PerNamespace {
			if in := &p.Status.PerNamespace[j]; in.Name == s.Namespace.Name {
				r.Pods, r.UpdatedPods = &in.Pods, &in.UpdatedPods
			}
		}
		s.fill(&r, downgrade.Source{Kind: downgrade.KindCluster, Name: p.Name}, p, &p.Spec.ProfileSpec, &p.Status.ProfileStatus, s.Rendered.Cluster)
		rows = append(rows, r)
	}
	for _, r := range rows {
		described[r.Profile] = true
	}
	for _, served := range s.ServedProfiles() {
		if !described[served.Name] {
			rows = append(rows, Row{Profile: served.Name, State: StateWithoutObject, Why: "the operator removes it within a moment, unless it was deleted together with its resource definition"})
		}
	}
	lost := func(r Row) int {
		if r.State == state(v1alpha1.ReasonConflict) {
			return 1
		}
		return 0
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Profile, b.Profile), cmp.Compare(lost(a), lost(b)), cmp.Compare(a.From, b.From))
	})
	return rows
}

// state returns a reason of the condition Accepted as a state: "NotWritten" is "not written".
func state(reason string) string {
	var words strings.Builder
	for i, r := range reason {
		if i > 0 && r >= 'A' && r <= 'Z' {
			words.WriteByte(' ')
		}
		words.WriteRune(r)
	}
	return strings.ToLower(words.String())
}

// fill sets the state of an object and its reason.
func (s *Set) fill(r *Row, source downgrade.Source, object metav1.Object, spec *v1alpha1.ProfileSpec, status *v1alpha1.ProfileStatus, verdicts map[string]render.Verdict) {
	if status.Strength != nil {
		r.Strength = *status.Strength
	}
	verdict := verdicts[object.GetName()]
	accepted := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAccepted)
	part := slices.IndexFunc(s.Rendered.Parts, func(p render.Part) bool { return p.Cluster == (source.Namespace == "") && p.Object == source.Name })
	switch change := s.withheld(source); {
	case object.GetDeletionTimestamp() != nil:
		r.State, r.Why = state(v1alpha1.ReasonDeleting), "the object is being deleted and has finalizers"
	case !verdict.Accepted:
		r.State, r.Why = state(verdict.Reason), verdict.Message
	case change != nil:
		r.State, r.Why = StateWithheld, Withheld(*change)
	case part >= 0 && s.Served.Serves(s.Rendered.Parts[part].Profile):
		r.State = StateServed
	case part >= 0 && spec.Rollout != nil && s.isRollingOut(status, r.Profile):
		r.State, r.Why = StateRollingOut, fmt.Sprintf("%s: %s get it, the others what was served before. %s", status.Rollout.Phase, status.Rollout.Reach(spec.Rollout), status.Rollout.Message)
	case accepted != nil && accepted.Status == metav1.ConditionFalse && accepted.ObservedGeneration == object.GetGeneration():
		r.State, r.Why = state(accepted.Reason), accepted.Message
	default:
		r.State, r.Why = StatePending, fmt.Sprintf("the operator has not written it into the ConfigMap %s yet; if that lasts, kubectl crypto-broker check says whether it runs", v1alpha1.ProfilesConfigMap)
	}
	if r.State != StateServed {
		r.Pods, r.UpdatedPods = nil, nil // not all pods, or none, serve what the object describes
	}
}

// isRollingOut reports whether an object with this status is rolled out to a namespace, which
// serves another profile of the name.
func (s *Set) isRollingOut(status *v1alpha1.ProfileStatus, name string) bool {
	_, serves := s.Served.ServedAs(name)
	return serves && status.Rollout != nil && status.Rollout.Phase != v1alpha1.RolloutComplete
}

// withheld returns the withheld change by an object, or nil.
func (s *Set) withheld(source downgrade.Source) *downgrade.Change {
	for i := range s.Judgement.Withheld {
		if s.Judgement.Withheld[i].Source == source {
			return &s.Judgement.Withheld[i]
		}
	}
	return nil
}

// Withheld returns a sentence about the profile that is served instead of a withheld change.
func Withheld(change downgrade.Change) string {
	switch {
	case change.Unknown:
		return "it may be weaker than a profile that was served before, and nothing is served under its name"
	case change.Served:
		return "it is weaker than the profile that was served before, which is still served"
	default:
		return "it is weaker than the profile that was served before it was removed, and nothing is served under its name"
	}
}

// ServedProfiles returns the profiles of the set that is in the ConfigMap.
func (s *Set) ServedProfiles() []profile.Profile {
	if s.ConfigMap == nil {
		return nil
	}
	document, _ := profile.Parse(profile.FileName, []byte(s.ConfigMap.Data[profile.FileName]))
	if document == nil {
		return nil
	}
	// Leave out profiles of a rollout, because not all brokers serve them.
	return slices.DeleteFunc(document.Profiles, func(p profile.Profile) bool { return p.Rollout != nil })
}
