// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/rollouts"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// object is a profile of either kind.
type object struct {
	source     downgrade.Source
	generation int64
	spec       *v1alpha1.ProfileSpec
	status     *v1alpha1.ProfileStatus
	// namespaces has the states of namespaces in the status of a ClusterCryptoProfile.
	namespaces []v1alpha1.NamespaceStatus
}

func namespacedObject(p *v1alpha1.CryptoProfile) object {
	return object{downgrade.Source{Kind: downgrade.KindNamespaced, Namespace: p.Namespace, Name: p.Name}, p.Generation, &p.Spec, &p.Status, nil}
}

func clusterObject(p *v1alpha1.ClusterCryptoProfile) object {
	return object{downgrade.Source{Kind: downgrade.KindCluster, Name: p.Name}, p.Generation, &p.Spec.ProfileSpec, &p.Status.ProfileStatus, p.Status.PerNamespace}
}

// named returns the name of the object as in kubectl.
func (o *object) named() string {
	if o.source.Kind == downgrade.KindCluster {
		return "ccprof/" + o.source.Name
	}
	return "cprof/" + o.source.Name
}

// state returns the state of the profile, in the words of its conditions.
func (o *object) state() (state string, tone Tone, why string) {
	condition := func(kind string) *metav1.Condition { return meta.FindStatusCondition(o.status.Conditions, kind) }
	accepted, propagated := condition(v1alpha1.ConditionAccepted), condition(v1alpha1.ConditionPropagated)
	degraded, active := condition(v1alpha1.ConditionDegraded), rollouts.IsActive(o.status.Rollout)
	switch {
	case accepted == nil || o.status.ObservedGeneration < o.generation:
		return "Pending", Warn, "The operator has not looked at it yet. If that lasts, kubectl crypto-broker check says whether it runs."
	case accepted.Status != metav1.ConditionTrue:
		return "Not accepted: " + accepted.Reason, Bad, accepted.Message
	case degraded != nil && degraded.Status == metav1.ConditionTrue:
		return "Degraded: " + degraded.Reason, Bad, degraded.Message
	case active && (o.status.Rollout.Phase == v1alpha1.RolloutFailed || o.status.Rollout.Phase == v1alpha1.RolloutReturned):
		return "Rollout " + strings.ToLower(o.status.Rollout.Phase), Bad, o.status.Rollout.Message
	case active:
		return "Rolling out", Busy, o.status.Rollout.Message
	case propagated == nil:
		return "Pending", Warn, ""
	case propagated.Reason == v1alpha1.ReasonNoPods:
		return "No pods", Good, ""
	case propagated.Status == metav1.ConditionTrue:
		return "Served", Good, ""
	case propagated.Reason == v1alpha1.ReasonInProgress:
		return "Propagating", Busy, propagated.Message
	default:
		return "Not propagated: " + propagated.Reason, Warn, propagated.Message
	}
}

// isSettled reports whether the operator says that all brokers of a namespace serve their set.
func (o *object) isSettled() bool {
	_, tone, _ := o.state()
	return tone == Good
}

// profile returns the row of the profile. serving has the workloads with brokers of each namespace.
func (o *object) profile(serving map[string][]Serving) Profile {
	state, tone, why := o.state()
	p := Profile{
		Object: o.named(), Namespace: o.source.Namespace, Name: render.Name(o.source.Name, o.spec), State: state, Tone: tone, Why: cut(why),
		Strength: o.status.Strength, Weakest: cut(o.status.Weakest), FIPS: o.status.FIPS,
		Pods: o.status.Pods, Updated: o.status.UpdatedPods, Unverified: o.status.UnverifiedPods,
	}
	if d := o.spec.Deprecation; d != nil {
		p.Deprecated = deprecation(d)
	}
	where := serving[o.source.Namespace]
	if o.source.Kind == downgrade.KindCluster {
		where = nil
		for _, in := range o.namespaces {
			if in.Pods > 0 {
				where = append(where, Serving{in.Name, int(in.Pods)})
			}
		}
		sortServing(where)
	}
	if !meta.IsStatusConditionTrue(o.status.Conditions, v1alpha1.ConditionAccepted) {
		where = nil
	}
	p.Serving = first(where, maxServing)
	return p
}

// deprecation says when and why a profile ends.
func deprecation(d *v1alpha1.Deprecation) string {
	text := "Deprecated"
	if d.DeprecatedSince != "" {
		text += " since " + d.DeprecatedSince
	}
	if d.ReplacedBy != "" {
		text += ", replaced by " + d.ReplacedBy
	}
	if d.RemoveAfter != "" {
		text += ", to be removed after " + d.RemoveAfter
	}
	if d.Reason != "" {
		text += ": " + d.Reason
	}
	return cut(text)
}

func sortServing(all []Serving) {
	slices.SortFunc(all, func(a, b Serving) int { return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Where, b.Where)) })
}

// servingOf returns the workloads with brokers of each namespace, the largest first.
func servingOf(rows []brokers.Row) map[string][]Serving {
	type place struct{ namespace, workload string }
	pods := map[place]int{}
	for _, r := range rows {
		if r.Broker != brokers.Missing && r.Broker != brokers.None {
			pods[place{r.Namespace, workloadOf(r)}]++
		}
	}
	all := map[string][]Serving{}
	for at, n := range pods {
		all[at.namespace] = append(all[at.namespace], Serving{at.workload, n})
	}
	for _, in := range all {
		sortServing(in)
	}
	return all
}

// workloadOf returns kind/name, or pod/name for a pod without an owner.
func workloadOf(r brokers.Row) string { return cmp.Or(r.Workload, "pod/"+r.Pod) }

// worst compares by the tone, the worst first.
func worst(a, b Tone) int {
	order := []Tone{Bad, Warn, Busy, Good}
	return cmp.Compare(slices.Index(order, a), slices.Index(order, b))
}

// profilesOf returns the rows of all profiles, the worst first.
func profilesOf(objects []object, rows []brokers.Row) (all []Profile) {
	serving := servingOf(rows)
	for i := range objects {
		all = append(all, objects[i].profile(serving))
	}
	slices.SortFunc(all, func(a, b Profile) int {
		return cmp.Or(worst(a.Tone, b.Tone), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Object, b.Object))
	})
	return all
}
