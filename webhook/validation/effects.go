// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// effects finds the changes of a request in the sets of namespaces. The work grows with the names
// and the namespaces that the request concerns, not with the other profiles of these namespaces.
type effects struct {
	// reader reads from a cache with the index profileNameIndex.
	reader client.Reader
	// minimum is the minimum strength in bits, or 0.
	minimum int
	// operatorNamespace never gets profiles, as the namespaces of Kubernetes.
	operatorNamespace string
}

// of returns the effect of a request that turns before into after, one of which may be nil. It
// compares no further namespaces once the refusal has as many changes as one annotation can
// allow.
func (e *effects) of(ctx context.Context, before, after client.Object) (effect, error) {
	w := newComparison(before, after, e.minimum)
	if err := e.read(ctx, w); err != nil {
		return effect{}, err
	}
	found := map[string]*placed{}
	var withheld, allowed, tolerated []string
	uncompared := 0
	for i := range w.namespaces {
		if err := ctx.Err(); err != nil {
			return effect{}, fmt.Errorf("%d of %d namespaces compared: %w", i, len(w.namespaces), err)
		}
		if len(withheld) >= downgrade.MaxDigests {
			uncompared = len(w.namespaces) - i
			break
		}
		ns := &w.namespaces[i]
		if !w.concerns(ns) || contract.IsExcluded(ns.Name, e.operatorNamespace) || !ns.DeletionTimestamp.IsZero() {
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
		judged, err := w.judge(ns)
		if err != nil {
			return effect{}, err
		}
		add(judged.withheld, &withheld)
		add(judged.allowed, &allowed)
		add(judged.tolerated, &tolerated)
	}
	all := func(digests []string) (changes []placed) {
		for _, digest := range digests {
			changes = append(changes, *found[digest])
		}
		return changes
	}
	return effect{withheld: all(withheld), allowed: all(allowed), tolerated: all(tolerated), uncompared: uncompared}, nil
}

// read reads the data of the comparison: the profiles of the names, and the namespace of a
// CryptoProfile, or all namespaces for a ClusterCryptoProfile, with their sets.
func (e *effects) read(ctx context.Context, w *comparison) error {
	for _, name := range w.names {
		if err := e.readProfiles(ctx, w, name); err != nil {
			return err
		}
	}
	if name := w.subject().GetNamespace(); name != "" {
		return e.readNamespace(ctx, w, name)
	}
	var namespaces corev1.NamespaceList
	var sets corev1.ConfigMapList
	err := errors.Join(
		e.reader.List(ctx, &namespaces, client.UnsafeDisableDeepCopy),
		e.reader.List(ctx, &sets, client.UnsafeDisableDeepCopy))
	if err != nil {
		return err
	}
	w.namespaces = namespaces.Items
	for i := range sets.Items {
		if sets.Items[i].Name == v1alpha1.ProfilesConfigMap {
			w.sets[sets.Items[i].Namespace] = &sets.Items[i]
		}
	}
	return nil
}

// readProfiles lists the profiles of one name.
func (e *effects) readProfiles(ctx context.Context, w *comparison, name string) error {
	var namespaced v1alpha1.CryptoProfileList
	var cluster v1alpha1.ClusterCryptoProfileList
	named := client.MatchingFields{profileNameIndex: name}
	err := errors.Join(
		e.reader.List(ctx, &namespaced, named, client.InNamespace(w.subject().GetNamespace())),
		e.reader.List(ctx, &cluster, named))
	if err != nil {
		return err
	}
	for _, p := range namespaced.Items {
		w.namespaced[p.Namespace] = append(w.namespaced[p.Namespace], p)
	}
	_, isCluster := w.subject().(*v1alpha1.ClusterCryptoProfile)
	for i := range cluster.Items {
		if p := &cluster.Items[i]; !isCluster || p.Name != w.subject().GetName() {
			w.cluster = append(w.cluster, selecting{p, render.Selector(&p.Spec)})
		}
	}
	return nil
}

// readNamespace reads one namespace and its set.
func (e *effects) readNamespace(ctx context.Context, w *comparison, name string) error {
	var namespace corev1.Namespace
	var set corev1.ConfigMap
	if err := e.reader.Get(ctx, client.ObjectKey{Name: name}, &namespace); client.IgnoreNotFound(err) != nil {
		return err
	}
	namespace.Name = name // the cache may not have a new namespace yet
	w.namespaces = []corev1.Namespace{namespace}
	switch err := e.reader.Get(ctx, client.ObjectKey{Namespace: name, Name: v1alpha1.ProfilesConfigMap}, &set); {
	case err == nil:
		w.sets[name] = &set
	case client.IgnoreNotFound(err) != nil:
		return err
	}
	return nil
}
