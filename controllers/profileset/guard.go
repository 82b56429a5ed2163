// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
	"github.com/crypto-broker/crypto-broker-operator/controllers/rollout"
)

// guard withholds profiles that are weaker than the served ones and not allowed. Admission
// refuses such changes if it sees them. The guard is for changes that admission cannot see: a
// changed label of a namespace, a deleted ClusterCryptoProfile, a time without admission.
type guard struct {
	namespaces *state.Store
	// minimum is the minimum strength in bits, or 0.
	minimum int
	// baseline finds out what a namespace served before this process began.
	baseline func(context.Context, sources) (downgrade.State, error)

	weakened prometheus.Counter
}

func newGuard(namespaces *state.Store, minimum int, baseline func(context.Context, sources) (downgrade.State, error)) *guard {
	return &guard{
		namespaces: namespaces,
		minimum:    minimum,
		baseline:   baseline,
		weakened: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "crypto_broker_operator_profiles_weakened_total",
			Help: "Profiles of namespaces that became weaker because somebody allowed it.",
		}),
	}
}

// guarded is a set after the guard has decided about it.
type guarded struct {
	render.Result
	// annotations are the annotations of the ConfigMap, and state is the State in it.
	annotations map[string]string
	state       downgrade.State
	// withheld and allowed are the changes that are weaker.
	withheld, allowed []downgrade.Change
	// frozen reports whether the baseline is not known and a profile is not allowed. Then brokers
	// keep their sets, and the ConfigMap has no set.
	frozen bool
	// held says why the set in the ConfigMap stays. It is empty if the set is not held.
	held string
}

// judge compares the rendered set with the State of the namespace.
func (g *guard) judge(ctx context.Context, from sources) (guarded, error) {
	served, err := g.served(ctx, from)
	if err != nil {
		return guarded{Result: from.rendered}, err
	}
	if from.rendered.Refusal != "" {
		return guarded{Result: from.rendered, annotations: served.Annotations(), state: served}, nil
	}
	candidates := downgrade.Candidates(from.namespace.Name, from.rendered.Parts, from.namespaced, from.cluster)
	j, without := fitting(served, candidates, g.minimum)
	kept, rolling := rollout.Of(from.namespaced, from.cluster).Keep(served, candidates, j, g.minimum)
	if len(rolling) > 0 {
		j, without = fitting(served, kept, g.minimum)
	}
	g.namespaces.Update(from.namespace, func(known *state.Namespace) { known.Withheld = len(j.Withheld) })
	set := guarded{Result: from.rendered, annotations: j.After.Annotations(), state: j.After, withheld: j.Withheld, allowed: j.Allowed}
	set.frozen = served.IsUnknown() && len(j.Withheld) > 0
	if j.IsUnchanged() && len(without) == 0 && len(rolling) == 0 {
		return set, nil
	}
	set.explain(j, candidates, without)
	if set.frozen {
		set.annotations, set.state, set.allowed = served.Annotations(), served, nil
		set.Data, set.Digest, set.Names, set.Parts = nil, "", nil, nil
		return set, nil
	}
	set.fill(set.rollOut(j.Served, rolling, from.namespace.Labels))
	return set, nil
}

// explain sets the verdict on each object whose profile is not served as described, with the
// reason.
func (g *guarded) explain(j downgrade.Judgement, candidates []downgrade.Candidate, without []downgrade.Source) {
	g.Namespaced, g.Cluster = maps.Clone(g.Namespaced), maps.Clone(g.Cluster)
	if g.frozen {
		for _, c := range candidates {
			g.refuse(c.Source, v1alpha1.ReasonNotWritten, "The operator does not know which profiles the namespace served before, so brokers keep the set that they have until all profiles of the namespace are allowed. This profile is allowed already, or does not have to be.")
		}
	}
	for _, source := range without {
		g.refuse(source, v1alpha1.ReasonTooLarge, fmt.Sprintf("There is no room for this profile in the set, which has at most %d bytes, because older profiles stay in the place of weaker ones.", render.MaxSetSize))
	}
	for _, c := range j.Withheld {
		g.refuse(c.Source, v1alpha1.ReasonDowngradeWithheld, c.Withheld())
	}
	for _, s := range j.Short {
		message := s.Sentence()
		if s.Served {
			message += " What was served before is still served."
		}
		g.refuse(s.Source, v1alpha1.ReasonBelowMinimumStrength, message)
	}
}

// fitting judges the candidates. It also returns the CryptoProfiles for which there is no room
// beside the older profiles that stay, the largest first. So users who may write the profiles of
// a namespace cannot push ClusterCryptoProfiles out of the set.
func fitting(state downgrade.State, candidates []downgrade.Candidate, minimum int) (j downgrade.Judgement, without []downgrade.Source) {
	j = state.Judge(candidates, minimum)
	excess := 0
	if !j.IsUnchanged() {
		excess = size(j.Served) - render.MaxSetSize
	}
	for excess > 0 {
		left, out := largest(candidates, j.Served, excess)
		if len(out) == 0 {
			break // only ClusterCryptoProfiles are left
		}
		candidates, without = left, append(without, out...)
		j = state.Judge(candidates, minimum)
		excess = size(j.Served) - render.MaxSetSize
	}
	return j, without
}

// largest removes the largest of the namespace's candidates until the set is smaller by excess
// bytes.
func largest(candidates []downgrade.Candidate, served []profile.Profile, excess int) (left []downgrade.Candidate, out []downgrade.Source) {
	sizes := map[string]int{} // by the name of the profile
	for i := range served {
		sizes[served[i].Name] = size(served[i : i+1])
	}
	bySize := slices.SortedStableFunc(slices.Values(candidates), func(a, b downgrade.Candidate) int {
		return sizes[b.Profile.Name] - sizes[a.Profile.Name]
	})
	for _, c := range bySize {
		if c.Source.Kind != downgrade.KindNamespaced || sizes[c.Profile.Name] == 0 || excess <= 0 {
			left = append(left, c)
			continue
		}
		out = append(out, c.Source)
		excess -= sizes[c.Profile.Name]
	}
	return left, out
}

// size returns the number of bytes of a set with these profiles, or math.MaxInt if it cannot be
// encoded.
func size(profiles []profile.Profile) int {
	data, err := profile.Marshal(&profile.Document{Profiles: profiles})
	if err != nil {
		return math.MaxInt
	}
	return len(data)
}

// refuse sets the reason why an object's profile is not in the set.
func (g *guarded) refuse(source downgrade.Source, reason, message string) {
	g.update(source, func(v *render.Verdict) { v.Accepted, v.Reason, v.Message = false, reason, message })
}

// update changes the verdict on an object. The maps of verdicts must not be shared with another
// set.
func (g *guarded) update(source downgrade.Source, change func(*render.Verdict)) {
	verdicts := g.Namespaced
	if source.Namespace == "" {
		verdicts = g.Cluster
	}
	verdict := verdicts[source.Name]
	change(&verdict)
	verdicts[source.Name] = verdict
}

// fill replaces the rendered profiles of the set.
func (g *guarded) fill(served []profile.Profile) {
	data, err := profile.Marshal(&profile.Document{Profiles: served})
	if err == nil && len(data) > render.MaxSetSize {
		err = fmt.Errorf("it takes %d bytes, and a set has at most %d", len(data), render.MaxSetSize)
	}
	g.Parts = nil // the objects of the older profiles are no longer known
	if err != nil {
		g.Refusal = fmt.Sprintf("The set with older profiles in the place of withheld ones can't be written, and brokers keep the set that they have: %s.", err)
		g.Data, g.Digest, g.Names = nil, "", nil
		return
	}
	g.Data, g.Digest, g.Names = data, profile.Digest(data), nil
	g.NamesKeyProviders = profile.NamesKeyProviders(served)
	for _, p := range served {
		g.Names = append(g.Names, p.Name)
	}
	g.Names = slices.Compact(g.Names) // two profiles of a rollout have one name
}

// served returns what the namespace served.
func (g *guard) served(ctx context.Context, from sources) (downgrade.State, error) {
	if served := g.namespaces.Of(from.namespace).Served; served != nil {
		return *served, nil
	}
	return g.baseline(ctx, from)
}
