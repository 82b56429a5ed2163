// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// guard withholds from the sets of namespaces what is weaker than what they
// served and was not allowed. Admission refuses such a change where it sees it;
// here are those that it can't see: a label of a namespace, a
// ClusterCryptoProfile that goes, a time without admission.
type guard struct {
	// minimum is the least strength in bits, 0 for none.
	minimum int

	mu sync.Mutex
	// known is what this process wrote or found in a namespace. It counts before
	// the ConfigMap, which somebody may have edited or deleted.
	known map[string]knownState
	// baseline reads what a namespace served where that is not known.
	baseline func(context.Context, *corev1.Namespace, *corev1.ConfigMap, render.Result) (downgrade.State, error)

	withheld *prometheus.GaugeVec
	weakened prometheus.Counter
}

type knownState struct {
	namespace types.UID
	state     downgrade.State
}

func newGuard(minimum int, baseline func(context.Context, *corev1.Namespace, *corev1.ConfigMap, render.Result) (downgrade.State, error)) *guard {
	return &guard{
		minimum:  minimum,
		known:    map[string]knownState{},
		baseline: baseline,
		withheld: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "crypto_broker_operator_profiles_withheld",
			Help: "Profiles of a namespace that are not served because they are weaker than what was; a namespace with none is not listed.",
		}, []string{"namespace"}),
		weakened: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "crypto_broker_operator_profiles_weakened_total",
			Help: "Profiles of namespaces that became weaker, as somebody allowed.",
		}),
	}
}

// register makes the metrics known.
func (g *guard) register(metrics prometheus.Registerer) error {
	for _, metric := range []prometheus.Collector{g.withheld, g.weakened} {
		if err := metrics.Register(metric); err != nil {
			return err
		}
	}
	return nil
}

// guarded is a set after the guard has looked at it.
type guarded struct {
	render.Result
	// annotations are for the ConfigMap, and state is what it will hold.
	annotations map[string]string
	state       downgrade.State
	// withheld and allowed are the changes that are weaker.
	withheld, allowed []downgrade.Change
	// frozen tells that brokers keep what they have, and that there is no set in the
	// ConfigMap: what they served is not known, and a profile is not allowed.
	frozen bool
	// held says why the set is the one in place, empty where it is not held.
	held string
}

// judge decides about a set; found is the ConfigMap of the namespace.
func (g *guard) judge(ctx context.Context, ns *corev1.Namespace, found *corev1.ConfigMap, set render.Result, namespaced []v1alpha1.CryptoProfile, cluster []v1alpha1.ClusterCryptoProfile) (guarded, error) {
	state, err := g.state(ctx, ns, found, set)
	if err != nil {
		return guarded{Result: set}, err
	}
	if set.Refusal != "" {
		return guarded{Result: set, annotations: state.Annotations(), state: state}, nil
	}
	candidates := downgrade.Candidates(ns.Name, set.Parts, namespaced, cluster)
	j, without := fitting(state, candidates, g.minimum)
	g.count(ns.Name, len(j.Withheld))
	all := guarded{Result: set, annotations: j.After.Annotations(), state: j.After, withheld: j.Withheld, allowed: j.Allowed}
	all.frozen = state.IsUnknown() && len(j.Withheld) > 0
	if j.IsUnchanged() && len(without) == 0 {
		return all, nil
	}
	all.Namespaced, all.Cluster = maps.Clone(set.Namespaced), maps.Clone(set.Cluster)
	if all.frozen {
		for _, c := range candidates {
			all.judge(c.Source, v1alpha1.ReasonNotWritten, "What the namespace served before is not known, so brokers keep what they have until all profiles of the namespace are allowed; this one is, or needs not be.")
		}
	}
	for _, source := range without {
		all.judge(source, v1alpha1.ReasonTooLarge, fmt.Sprintf("With the older profiles that stay in the place of weaker ones there is no room for this one in the set, which has at most %d bytes.", render.MaxSetSize))
	}
	for _, c := range j.Withheld {
		all.judge(c.Source, v1alpha1.ReasonDowngradeWithheld, c.Withheld())
	}
	for _, s := range j.Short {
		message := s.Sentence()
		if s.Served {
			message += " What was served before goes on being served."
		}
		all.judge(s.Source, v1alpha1.ReasonBelowMinimumStrength, message)
	}
	if all.frozen {
		all.annotations, all.state, all.allowed = state.Annotations(), state, nil
		all.Data, all.Digest, all.Names, all.Parts = nil, "", nil, nil
		return all, nil
	}
	all.fill(j.Served)
	return all, nil
}

// fitting judges the candidates, and returns those of the namespace for which there
// is no room beside the older profiles that stay, the largest first: whoever may
// write the profiles of a namespace cannot keep the cluster's from it by that.
func fitting(state downgrade.State, candidates []downgrade.Candidate, minimum int) (j downgrade.Judgement, without []downgrade.Source) {
	j = state.Judge(candidates, minimum)
	excess := 0
	if !j.IsUnchanged() {
		excess = size(j.Served) - render.MaxSetSize
	}
	for excess > 0 {
		left, out := largest(candidates, j.Served, excess)
		if len(out) == 0 {
			break // all that is left is the cluster's
		}
		candidates, without = left, append(without, out...)
		j = state.Judge(candidates, minimum)
		excess = size(j.Served) - render.MaxSetSize
	}
	return j, without
}

// largest takes out the namespace's candidates whose names take most, until what
// they take makes up for excess, in bytes.
func largest(candidates []downgrade.Candidate, served []profile.Profile, excess int) (left []downgrade.Candidate, out []downgrade.Source) {
	takes := map[string]int{} // by the name of the profile
	for i := range served {
		takes[served[i].Name] = size(served[i : i+1])
	}
	bySize := slices.SortedStableFunc(slices.Values(candidates), func(a, b downgrade.Candidate) int {
		return takes[b.Profile.Name] - takes[a.Profile.Name]
	})
	for _, c := range bySize {
		if c.Source.Kind != downgrade.KindNamespaced || takes[c.Profile.Name] == 0 || excess <= 0 {
			left = append(left, c)
			continue
		}
		out = append(out, c.Source)
		excess -= takes[c.Profile.Name]
	}
	return left, out
}

// size is how many bytes a set with these profiles has, more than any where it
// can't be written.
func size(profiles []profile.Profile) int {
	data, err := profile.Marshal(&profile.Document{Profiles: profiles})
	if err != nil {
		return math.MaxInt
	}
	return len(data)
}

// judge says why an object's profile is not in the set.
func (g *guarded) judge(source downgrade.Source, reason, message string) {
	verdicts := g.Namespaced
	if source.Namespace == "" {
		verdicts = g.Cluster
	}
	verdict := verdicts[source.Name]
	verdict.Accepted, verdict.Reason, verdict.Message = false, reason, message
	verdicts[source.Name] = verdict
}

// fill puts other profiles into the set than were rendered.
func (g *guarded) fill(served []profile.Profile) {
	data, err := profile.Marshal(&profile.Document{Profiles: served})
	if err == nil && len(data) > render.MaxSetSize {
		err = fmt.Errorf("it takes %d bytes, and a set has at most %d", len(data), render.MaxSetSize)
	}
	g.Parts = nil // which objects the older profiles are from is not known any more
	if err != nil {
		g.Refusal = fmt.Sprintf("The set with what is withheld from it can't be written, and brokers keep what they have: %s.", err)
		g.Data, g.Digest, g.Names = nil, "", nil
		return
	}
	g.Data, g.Digest, g.Names = data, profile.Digest(data), nil
	for _, p := range served {
		g.Names = append(g.Names, p.Name)
	}
}

// state is what the namespace served.
func (g *guard) state(ctx context.Context, ns *corev1.Namespace, found *corev1.ConfigMap, set render.Result) (downgrade.State, error) {
	g.mu.Lock()
	known, ok := g.known[ns.Name]
	g.mu.Unlock()
	if ok && known.namespace == ns.UID {
		return known.state, nil
	}
	return g.baseline(ctx, ns, found, set)
}

// count shows how many changes are withheld in a namespace.
func (g *guard) count(namespace string, withheld int) {
	if withheld == 0 {
		g.withheld.DeleteLabelValues(namespace)
		return
	}
	g.withheld.WithLabelValues(namespace).Set(float64(withheld))
}

// wrote remembers what is in the namespace's ConfigMap now.
func (g *guard) wrote(ns *corev1.Namespace, state downgrade.State) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known[ns.Name] = knownState{ns.UID, state}
}

// forget drops what is known of a namespace.
func (g *guard) forget(namespace string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.known, namespace)
	g.withheld.DeleteLabelValues(namespace)
}
