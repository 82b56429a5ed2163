// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/catalogue"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// comparison compares what namespaces serve before and after one request.
type comparison struct {
	before, after client.Object
	// minimum is the least strength in bits, 0 for none.
	minimum int
	// names are the profile names that the request concerns, one or two.
	names      []string
	namespaces []corev1.Namespace
	namespaced map[string][]v1alpha1.CryptoProfile // of the names, by namespace
	cluster    []v1alpha1.ClusterCryptoProfile     // of the names
	sets       map[string]*corev1.ConfigMap        // by namespace

	// Results so far, which are used again because most namespaces are alike.
	rendered map[string]*rendered
	judged   map[likeness]judged
}

// likeness is all that a judgement depends on.
type likeness struct {
	served        downgrade.Excerpt
	before, after *rendered
}

// judged is what a request makes weaker in a namespace.
type judged struct {
	withheld, allowed []downgrade.Change
	// tolerated are changes that the operator withholds, and that are no reason to
	// refuse the request.
	tolerated []downgrade.Change
}

// rendered are the profiles of the names in a namespace, before or after the request.
type rendered struct {
	parts      []render.Part
	candidates []downgrade.Candidate
}

// newComparison returns a comparison that nothing is read for yet. One of the objects
// may be nil.
func newComparison(before, after client.Object, minimum int) *comparison {
	c := &comparison{
		before: before, after: after, minimum: minimum,
		namespaced: map[string][]v1alpha1.CryptoProfile{}, sets: map[string]*corev1.ConfigMap{},
		rendered: map[string]*rendered{}, judged: map[likeness]judged{},
	}
	for _, object := range []client.Object{before, after} {
		for _, name := range profileName(object) {
			if !slices.Contains(c.names, name) {
				c.names = append(c.names, name)
			}
		}
	}
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
	for _, object := range []client.Object{c.before, c.after} {
		switch p := object.(type) {
		case *v1alpha1.CryptoProfile:
			if p.Namespace == ns.Name {
				return true
			}
		case *v1alpha1.ClusterCryptoProfile:
			if render.Selects(&p.Spec, ns.Labels) {
				return true
			}
		}
	}
	return false
}

// judge returns what the request makes weaker in a namespace.
func (c *comparison) judge(ns *corev1.Namespace) (judged, error) {
	alike := likeness{before: c.effective("before", c.before, ns), after: c.effective("after", c.after, ns)}
	if set := c.sets[ns.Name]; set != nil {
		alike.served = downgrade.Cut(set.Data[profile.FileName], set.Annotations, c.names...)
	}
	if found, ok := c.judged[alike]; ok {
		return found, nil
	}
	found, err := c.compare(alike)
	if err != nil {
		return judged{}, fmt.Errorf("ConfigMap %s/%s: %w", ns.Name, v1alpha1.ProfilesConfigMap, err)
	}
	c.judged[alike] = found
	return found, nil
}

// compare begins with what the namespace will serve once the operator has caught up
// with the objects as they are before the request. A profile that is withheld already
// and that the request does not change is no effect of the request.
func (c *comparison) compare(in likeness) (judged, error) {
	state, err := in.served.Read()
	if err != nil {
		return judged{}, err
	}
	caughtUp := state.Judge(in.before.candidates, c.minimum).After
	j := caughtUp.Judge(in.after.candidates, c.minimum)
	found := judged{allowed: j.Allowed}
	for _, change := range j.Withheld {
		same := func(p render.Part) bool { return p.Profile.Name == change.Profile }
		b, a := slices.IndexFunc(in.before.parts, same), slices.IndexFunc(in.after.parts, same)
		its := b >= 0 && isOf(in.before.parts[b], change.Source) && caughtUp.Serves(in.before.parts[b].Profile)
		switch {
		case b >= 0 && reflect.DeepEqual(in.before.parts[b], in.after.parts[a]):
		case c.isOfCatalogue(change.Source) && !its: // the namespace serves something of another object
			found.tolerated = append(found.tolerated, change)
		default:
			found.withheld = append(found.withheld, change)
		}
	}
	return found, nil
}

// isOf reports whether a profile comes from this ClusterCryptoProfile.
func isOf(part render.Part, source downgrade.Source) bool {
	return part.Cluster && part.Object == source.Name
}

// isOfCatalogue reports whether a profile that gets weaker is the object of the
// request and a profile of the operator's catalogue. A namespace that serves a stronger
// profile from another object must not keep the catalogue out of all other namespaces.
// So the request is admitted, and the operator withholds the profile in that namespace.
func (c *comparison) isOfCatalogue(source downgrade.Source) bool {
	p, is := c.after.(*v1alpha1.ClusterCryptoProfile)
	return is && source == sourceOf(downgrade.KindCluster, p) && catalogue.Has(p)
}

// effective returns the profiles of the names in a namespace, with the object in the
// place of the stored one, or without it where it is nil. Namespaces in which only the
// same ClusterCryptoProfiles count share one result.
func (c *comparison) effective(when string, object client.Object, ns *corev1.Namespace) *rendered {
	own, cluster := c.counting(object, ns)
	key := ""
	if len(own) == 0 {
		var text strings.Builder
		text.WriteString(when)
		for i := range cluster {
			text.WriteString("\n" + cluster[i].Name)
		}
		key = text.String()
		if known := c.rendered[key]; known != nil {
			return known
		}
	}
	parts := render.Effective(own, cluster, ns).Parts
	found := &rendered{parts, downgrade.Candidates(ns.Name, parts, own, cluster)}
	if len(own) == 0 {
		c.rendered[key] = found
	}
	return found
}

// counting returns the profiles that count in a namespace. A CryptoProfile does not
// count where a ClusterCryptoProfile has its name.
func (c *comparison) counting(object client.Object, ns *corev1.Namespace) (own []v1alpha1.CryptoProfile, cluster []v1alpha1.ClusterCryptoProfile) {
	subject := c.subject()
	_, isCluster := subject.(*v1alpha1.ClusterCryptoProfile)
	taken := map[string]bool{}
	take := func(p *v1alpha1.ClusterCryptoProfile) {
		if p.DeletionTimestamp.IsZero() && render.Selects(&p.Spec, ns.Labels) {
			cluster = append(cluster, *p)
			taken[profileName(p)[0]] = true
		}
	}
	for i := range c.cluster {
		if p := &c.cluster[i]; !isCluster || p.Name != subject.GetName() {
			take(p)
		}
	}
	if p, ok := object.(*v1alpha1.ClusterCryptoProfile); ok {
		take(asCreated(p.DeepCopy()))
	}
	for i := range c.namespaced[ns.Name] {
		if p := &c.namespaced[ns.Name][i]; !taken[profileName(p)[0]] && (isCluster || p.Name != subject.GetName()) {
			own = append(own, *p)
		}
	}
	if p, ok := object.(*v1alpha1.CryptoProfile); ok && !taken[profileName(p)[0]] {
		own = append(own, *asCreated(p.DeepCopy()))
	}
	return own, cluster
}
