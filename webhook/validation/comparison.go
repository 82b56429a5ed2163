// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/catalogue"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
	"github.com/crypto-broker/crypto-broker-operator/controllers/rollout"
)

// comparison compares the profiles that namespaces serve before and after one request.
type comparison struct {
	before, after client.Object
	// selectors are the selectors before and after the change. They are nil for CryptoProfiles.
	selectors [2]labels.Selector
	// minimum is the minimum strength in bits, or 0.
	minimum int
	// names are the profile names that the request concerns, one or two.
	names      []string
	finder     downgrade.Finder
	namespaces []corev1.Namespace
	namespaced map[string][]v1alpha1.CryptoProfile // of the names, by namespace
	cluster    []selecting                         // of the names, without the subject
	sets       map[string]*corev1.ConfigMap        // by namespace

	// These are cached results, because most namespaces have the same profiles.
	rendered map[string]*rendered
	judged   map[judgementKey]judged
}

// selecting is a cluster profile with its selector, which is read once for all namespaces.
type selecting struct {
	*v1alpha1.ClusterCryptoProfile
	selector labels.Selector
}

// judgementKey has all inputs of a judgement.
type judgementKey struct {
	served        downgrade.Excerpt
	before, after *rendered
}

// judged has the changes by which a request makes profiles weaker in a namespace.
type judged struct {
	withheld, allowed []downgrade.Change
	// tolerated are changes that the operator withholds, but that are no reason to refuse the
	// request.
	tolerated []downgrade.Change
}

// rendered are the profiles of the names in a namespace, before or after the request.
type rendered struct {
	parts      []render.Part
	candidates []downgrade.Candidate
	rollouts   rollout.Rollouts
}

// newComparison returns a comparison without data of namespaces. One of the objects may be nil.
func newComparison(before, after client.Object, minimum int) *comparison {
	c := &comparison{
		before: before, after: after, minimum: minimum,
		namespaced: map[string][]v1alpha1.CryptoProfile{}, sets: map[string]*corev1.ConfigMap{},
		rendered: map[string]*rendered{}, judged: map[judgementKey]judged{},
	}
	for i, object := range []*client.Object{&c.before, &c.after} {
		switch p := (*object).(type) {
		case *v1alpha1.CryptoProfile:
			*object = asCreated(p.DeepCopy())
		case *v1alpha1.ClusterCryptoProfile:
			*object, c.selectors[i] = asCreated(p.DeepCopy()), render.Selector(&p.Spec)
		}
		for _, name := range profileName(*object) {
			if !slices.Contains(c.names, name) {
				c.names = append(c.names, name)
			}
		}
	}
	c.finder = downgrade.NewFinder(c.names...)
	return c
}

// subject is the object of the request.
func (c *comparison) subject() client.Object {
	if c.after != nil {
		return c.after
	}
	return c.before
}

// concerns reports whether the object is for a namespace, before or after.
func (c *comparison) concerns(ns *corev1.Namespace) bool {
	if where := c.subject().GetNamespace(); where != "" {
		return where == ns.Name
	}
	return slices.ContainsFunc(c.selectors[:], func(selector labels.Selector) bool {
		return selector != nil && selector.Matches(labels.Set(ns.Labels))
	})
}

// judge returns the changes by which the request makes profiles weaker in a namespace.
func (c *comparison) judge(ns *corev1.Namespace) (judged, error) {
	own, cluster := c.counting(0, ns)
	var served downgrade.Excerpt
	if set := c.sets[ns.Name]; set != nil {
		served = c.finder.Cut(set.Data[profile.FileName], set.Annotations)
	}
	key := judgementKey{served: served, after: c.effective(1, ns)}
	if len(own) == 0 {
		key.before = c.effective(0, ns)
		if found, ok := c.judged[key]; ok {
			return found, nil
		}
	}
	state, err := served.Read()
	if err != nil {
		return judged{}, fmt.Errorf("ConfigMap %s/%s: %w", ns.Name, v1alpha1.ProfilesConfigMap, err)
	}
	if len(own) > 0 { // no other namespace is alike
		return c.compare(state, c.inService(state, own, cluster, ns), key.after), nil
	}
	c.judged[key] = c.compare(state, key.before, key.after)
	return c.judged[key], nil
}

// compare starts from the profiles that the namespace will serve once the operator has processed
// the objects before the request. A profile that is already withheld, and that the request does
// not change, is no effect of the request. During a rollout, the namespace serves the old profile
// until the rollout is complete.
func (c *comparison) compare(state downgrade.State, before, after *rendered) judged {
	kept, _ := before.rollouts.Keep(state, before.candidates, downgrade.Judgement{}, c.minimum)
	caughtUp := state.Judge(kept, c.minimum).After
	j := caughtUp.Judge(after.candidates, c.minimum)
	found := judged{allowed: j.Allowed}
	for _, change := range j.Withheld {
		same := func(p render.Part) bool { return p.Profile.Name == change.Profile }
		b, a := slices.IndexFunc(before.parts, same), slices.IndexFunc(after.parts, same)
		its := b >= 0 && isOf(before.parts[b], change.Source) && caughtUp.Serves(before.parts[b].Profile)
		switch {
		case b >= 0 && reflect.DeepEqual(before.parts[b], after.parts[a]):
		case c.isOfCatalogue(change.Source) && !its: // the namespace serves a profile of another object
			found.tolerated = append(found.tolerated, change)
		default:
			found.withheld = append(found.withheld, change)
		}
	}
	return found
}

// isOf reports whether a profile comes from this ClusterCryptoProfile.
func isOf(part render.Part, source downgrade.Source) bool {
	return part.Cluster && part.Object == source.Name
}

// isOfCatalogue reports whether a profile that becomes weaker is the object of the request and
// belongs to the operator's catalogue. A namespace that serves a stronger profile from another
// object must not prevent the catalogue in all other namespaces. So the request is admitted, and
// the operator withholds the profile in that namespace.
func (c *comparison) isOfCatalogue(source downgrade.Source) bool {
	p, is := c.after.(*v1alpha1.ClusterCryptoProfile)
	return is && source == sourceOf(p) && catalogue.Has(p)
}

// effective returns the profiles of the names in a namespace, before (0) or after (1) the
// request. Namespaces in which only the same ClusterCryptoProfiles apply share one result.
func (c *comparison) effective(when int, ns *corev1.Namespace) *rendered {
	own, cluster := c.counting(when, ns)
	key := ""
	if len(own) == 0 {
		var text strings.Builder
		text.WriteString(strconv.Itoa(when))
		for i := range cluster {
			text.WriteString("\n" + cluster[i].Name)
		}
		key = text.String()
		if known := c.rendered[key]; known != nil {
			return known
		}
	}
	found := renderedOf(render.Effective(own, cluster, ns).Parts, own, cluster, ns)
	if len(own) == 0 {
		c.rendered[key] = found
	}
	return found
}

// inService returns the profiles of the names in a namespace before the request. A profile that
// the namespace serves need not be compiled again.
func (c *comparison) inService(state downgrade.State, own []v1alpha1.CryptoProfile, cluster []v1alpha1.ClusterCryptoProfile, ns *corev1.Namespace) *rendered {
	if len(own) == 1 && len(cluster) == 0 && own[0].DeletionTimestamp.IsZero() {
		if p, err := render.Document(own[0].Name, &own[0].Spec); err == nil && state.Serves(p) {
			return renderedOf([]render.Part{{Profile: p, Object: own[0].Name}}, own, nil, ns)
		}
	}
	return renderedOf(render.Effective(own, cluster, ns).Parts, own, cluster, ns)
}

func renderedOf(parts []render.Part, own []v1alpha1.CryptoProfile, cluster []v1alpha1.ClusterCryptoProfile, ns *corev1.Namespace) *rendered {
	return &rendered{parts, downgrade.Candidates(ns.Name, parts, own, cluster), rollout.Of(own, cluster)}
}

// counting returns the profiles that apply in a namespace. The object of the request replaces the
// stored object, which is left out if the object of the request is nil. A CryptoProfile does not
// apply if a ClusterCryptoProfile has its name.
func (c *comparison) counting(when int, ns *corev1.Namespace) (own []v1alpha1.CryptoProfile, cluster []v1alpha1.ClusterCryptoProfile) {
	subject, object := c.subject(), []client.Object{c.before, c.after}[when]
	_, isCluster := subject.(*v1alpha1.ClusterCryptoProfile)
	taken := map[string]bool{}
	take := func(p selecting) {
		if p.DeletionTimestamp.IsZero() && p.selector.Matches(labels.Set(ns.Labels)) {
			cluster = append(cluster, *p.ClusterCryptoProfile)
			taken[profileName(p.ClusterCryptoProfile)[0]] = true
		}
	}
	for _, p := range c.cluster {
		take(p)
	}
	if p, ok := object.(*v1alpha1.ClusterCryptoProfile); ok {
		take(selecting{p, c.selectors[when]})
	}
	for i := range c.namespaced[ns.Name] {
		if p := &c.namespaced[ns.Name][i]; !taken[profileName(p)[0]] && (isCluster || p.Name != subject.GetName()) {
			own = append(own, *p)
		}
	}
	if p, ok := object.(*v1alpha1.CryptoProfile); ok && !taken[profileName(p)[0]] {
		own = append(own, *p)
	}
	return own, cluster
}
