// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// maxChanges is how many different changes a response tells of.
const maxChanges = 5

// effects finds out what a request changes in what namespaces serve.
type effects struct {
	// reader reads from a cache, live from the API server: what one namespace
	// served is too important to be old, and of many it would take too long.
	reader, live client.Reader
	// minimum is the least strength in bits, 0 for none.
	minimum int
	// excluded are namespaces that never get profiles.
	excluded []string
}

// placed is a change and the namespaces in which it happens.
type placed struct {
	downgrade.Change
	namespaces []string
}

// effect is what a request makes weaker.
type effect struct{ withheld, allowed []placed }

// of returns the effect of a request that turns before into after, one of which
// may be nil.
func (e *effects) of(ctx context.Context, before, after client.Object) (effect, error) {
	object := after
	if object == nil {
		object = before
	}
	world, err := e.read(ctx, object)
	if err != nil {
		return effect{}, err
	}
	world.before, world.after = before, after
	world.names = map[string]bool{}
	for _, o := range []client.Object{before, after} {
		switch p := o.(type) {
		case *v1alpha1.CryptoProfile:
			world.names[render.Name(p.Name, &p.Spec)] = true
		case *v1alpha1.ClusterCryptoProfile:
			world.names[render.Name(p.Name, &p.Spec.ProfileSpec)] = true
		}
	}
	found := map[string]*placed{}
	var withheld, allowed []string
	for i := range world.namespaces {
		if err := ctx.Err(); err != nil {
			return effect{}, fmt.Errorf("%d of %d namespaces compared: %w", i, len(world.namespaces), err)
		}
		ns := &world.namespaces[i]
		if !world.concerns(ns) || slices.Contains(e.excluded, ns.Name) || !ns.DeletionTimestamp.IsZero() {
			continue
		}
		add := func(changes []downgrade.Change, list *[]string) {
			for _, c := range changes {
				if found[c.Digest] == nil {
					found[c.Digest] = &placed{Change: c}
					*list = append(*list, c.Digest)
				}
				found[c.Digest].namespaces = append(found[c.Digest].namespaces, ns.Name)
			}
		}
		w, a, err := world.judge(ns, e.minimum)
		if err != nil {
			return effect{}, err
		}
		add(w, &withheld)
		add(a, &allowed)
	}
	var result effect
	for _, digest := range withheld {
		result.withheld = append(result.withheld, *found[digest])
	}
	for _, digest := range allowed {
		result.allowed = append(result.allowed, *found[digest])
	}
	return result, nil
}

// world is what the effect of one request is found out from.
type world struct {
	before, after client.Object
	// names are the profile names that the request can concern.
	names      map[string]bool
	namespaces []corev1.Namespace
	namespaced map[string][]v1alpha1.CryptoProfile // by namespace
	cluster    []v1alpha1.ClusterCryptoProfile
	sets       map[string]*corev1.ConfigMap // by namespace

	// states and rendered are those found so far: most namespaces are alike.
	states   map[string]downgrade.State
	rendered map[string]render.Result
}

// read lists what concerns a CryptoProfile, all of its namespace, or a
// ClusterCryptoProfile, all there is.
func (e *effects) read(ctx context.Context, object client.Object) (*world, error) {
	w := &world{
		namespaced: map[string][]v1alpha1.CryptoProfile{}, sets: map[string]*corev1.ConfigMap{},
		states: map[string]downgrade.State{}, rendered: map[string]render.Result{},
	}
	var in []client.ListOption
	var err error
	if name := object.GetNamespace(); name != "" {
		in = append(in, client.InNamespace(name))
		w.namespaces = make([]corev1.Namespace, 1)
		err = client.IgnoreNotFound(e.reader.Get(ctx, client.ObjectKey{Name: name}, &w.namespaces[0]))
		w.namespaces[0].Name = name // made so recently that the cache does not have it
	} else {
		var list corev1.NamespaceList
		err = e.reader.List(ctx, &list)
		w.namespaces = list.Items
	}
	var namespaced v1alpha1.CryptoProfileList
	var cluster v1alpha1.ClusterCryptoProfileList
	var sets corev1.ConfigMapList
	if name := object.GetNamespace(); name != "" {
		var set corev1.ConfigMap
		found := e.live.Get(ctx, client.ObjectKey{Namespace: name, Name: v1alpha1.ProfilesConfigMap}, &set)
		if found == nil {
			sets.Items = append(sets.Items, set)
		}
		err = errors.Join(err, client.IgnoreNotFound(found))
	} else {
		err = errors.Join(err, e.reader.List(ctx, &sets))
	}
	err = errors.Join(err, e.reader.List(ctx, &namespaced, in...), e.reader.List(ctx, &cluster))
	if err != nil {
		return nil, err
	}
	for _, p := range namespaced.Items {
		w.namespaced[p.Namespace] = append(w.namespaced[p.Namespace], p)
	}
	for i := range sets.Items {
		if sets.Items[i].Name == v1alpha1.ProfilesConfigMap {
			w.sets[sets.Items[i].Namespace] = &sets.Items[i]
		}
	}
	w.cluster = cluster.Items
	return w, nil
}

// concerns tells whether the object is for a namespace, before or after.
func (w *world) concerns(ns *corev1.Namespace) bool {
	for _, object := range []client.Object{w.before, w.after} {
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

// judge returns what the request makes weaker in a namespace. What is withheld
// there already, and is not changed, is not its doing.
//
// The comparison begins with what the namespace will serve once the operator has
// caught up with the objects as they are before the request.
func (w *world) judge(ns *corev1.Namespace, minimum int) (withheld, allowed []downgrade.Change, err error) {
	state, err := w.state(ns.Name)
	if err != nil {
		return nil, nil, err
	}
	ownBefore, clusterBefore := w.objects(ns.Name, w.before)
	ownAfter, clusterAfter := w.objects(ns.Name, w.after)
	before := w.effective("before", ownBefore, clusterBefore, ns)
	after := w.effective("after", ownAfter, clusterAfter, ns)

	caughtUp := state.Judge(downgrade.Candidates(ns.Name, before.Parts, ownBefore, clusterBefore), minimum).After
	j := caughtUp.Judge(downgrade.Candidates(ns.Name, after.Parts, ownAfter, clusterAfter), minimum)
	for _, c := range j.Withheld {
		same := func(p render.Part) bool { return p.Profile.Name == c.Profile }
		b, a := slices.IndexFunc(before.Parts, same), slices.IndexFunc(after.Parts, same)
		if b < 0 || !reflect.DeepEqual(before.Parts[b], after.Parts[a]) {
			withheld = append(withheld, c)
		}
	}
	return withheld, j.Allowed, nil
}

// state is what a namespace served, as far as the cache knows.
func (w *world) state(namespace string) (downgrade.State, error) {
	set := w.sets[namespace]
	if set == nil {
		return downgrade.State{}, nil
	}
	key := strings.Join([]string{set.Data[profile.FileName], set.Annotations[v1alpha1.RemovedProfilesAnnotation], set.Annotations[v1alpha1.ProfilesHistoryAnnotation]}, "\x00")
	if state, ok := w.states[key]; ok {
		return state, nil
	}
	state, err := downgrade.Read(set.Data[profile.FileName], set.Annotations, render.Result{})
	if err != nil {
		return downgrade.State{}, fmt.Errorf("ConfigMap %s/%s: %w", namespace, v1alpha1.ProfilesConfigMap, err)
	}
	w.states[key] = state
	return state, nil
}

// objects are those of the profile names that the request concerns, with the
// object in the place of the stored one, or without it where it is nil.
func (w *world) objects(namespace string, object client.Object) (own []v1alpha1.CryptoProfile, cluster []v1alpha1.ClusterCryptoProfile) {
	subject := w.after
	if subject == nil {
		subject = w.before
	}
	_, isCluster := subject.(*v1alpha1.ClusterCryptoProfile)
	for _, p := range w.namespaced[namespace] {
		if w.names[render.Name(p.Name, &p.Spec)] && (isCluster || p.Name != subject.GetName()) {
			own = append(own, p)
		}
	}
	for _, p := range w.cluster {
		if w.names[render.Name(p.Name, &p.Spec.ProfileSpec)] && (!isCluster || p.Name != subject.GetName()) {
			cluster = append(cluster, p)
		}
	}
	switch p := object.(type) {
	case *v1alpha1.CryptoProfile:
		own = append(own, *asCreated(p.DeepCopy()))
	case *v1alpha1.ClusterCryptoProfile:
		cluster = append(cluster, *asCreated(p.DeepCopy()))
	}
	return own, cluster
}

// effective is render.Effective, before or after the request, once for all
// namespaces without profiles of their own for which the same ClusterCryptoProfiles
// are.
func (w *world) effective(when string, own []v1alpha1.CryptoProfile, cluster []v1alpha1.ClusterCryptoProfile, ns *corev1.Namespace) render.Result {
	if len(own) > 0 {
		return render.Effective(own, cluster, ns)
	}
	var key strings.Builder
	key.WriteString(when + "\n")
	for i := range cluster {
		if p := &cluster[i]; render.Selects(&p.Spec, ns.Labels) {
			key.WriteString(p.Name + "\n")
		}
	}
	if result, ok := w.rendered[key.String()]; ok {
		return result
	}
	result := render.Effective(own, cluster, ns)
	w.rendered[key.String()] = result
	return result
}

// where names the namespaces of a change, the first of many.
func (p placed) where() string {
	if more := len(p.namespaces) - 1; more > 0 {
		return fmt.Sprintf("of namespace %q and %d more", p.namespaces[0], more)
	}
	return fmt.Sprintf("of namespace %q", p.namespaces[0])
}

// refusal says what would become weaker and how that is allowed. subject is the
// object of the request; created tells that it is not there yet, so that nobody
// can annotate it before.
func (e effect) refusal(subject downgrade.Source, created bool) string {
	var sentences []string
	bySource := map[downgrade.Source][]downgrade.Change{}
	for i, c := range e.withheld {
		bySource[c.Source] = append(bySource[c.Source], c.Change)
		if i < maxChanges {
			what := fmt.Sprintf("this makes the profile %q %s weaker", c.Profile, c.where())
			if c.Source != subject {
				what = fmt.Sprintf("this puts %s into service as the profile %q %s, which is weaker", c.Source, c.Profile, c.where())
			}
			was := "than what is served"
			if !c.Served {
				was = "than what was served under this name before"
			}
			sentences = append(sentences, fmt.Sprintf("%s %s: %s", what, was, strings.Join(c.Sentences(), " ")))
		}
	}
	if more := len(e.withheld) - maxChanges; more > 0 {
		sentences = append(sentences, fmt.Sprintf("And %d more changes make profiles weaker.", more))
	}
	sources := slices.SortedFunc(maps.Keys(bySource), func(a, b downgrade.Source) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	for i, source := range sources {
		if i == maxChanges {
			break
		}
		if created && source == subject {
			key, digests, _ := strings.Cut(downgrade.Annotation(bySource[source]...), "=")
			sentences = append(sentences, fmt.Sprintf("If that is meant, somebody with the verb %q on %s allows exactly this by creating it with the annotation %s: %s", downgrade.Verb, source, key, digests))
			continue
		}
		sentences = append(sentences, fmt.Sprintf("If that is meant, somebody with the verb %q on %s allows exactly this by the following command, after which it can be done: %s", downgrade.Verb, source, downgrade.Command(bySource[source]...)))
	}
	return strings.Join(sentences, " ")
}

// warnings say what becomes weaker, as was allowed.
func (e effect) warnings() []string {
	var warnings []string
	for i, c := range e.allowed {
		if i == maxChanges {
			return append(warnings, fmt.Sprintf("and %d more changes make profiles weaker, as was allowed", len(e.allowed)-i))
		}
		for _, sentence := range c.Sentences() {
			warnings = append(warnings, fmt.Sprintf("the profile %q %s becomes weaker, as was allowed: %s", c.Profile, c.where(), sentence))
		}
	}
	return warnings
}
