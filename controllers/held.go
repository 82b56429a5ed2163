// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// named are the names of the profiles in the set with this file.
type named struct {
	digest string
	names  []string
}

// holding returns the set that counts in a namespace: the one that was decided, or
// the one in place where profiles of it are missing that went with their resource
// definition.
func (r *namespaceReconciler) holding(ctx context.Context, namespace *corev1.Namespace, found *corev1.ConfigMap, rendered render.Result, set guarded) (guarded, error) {
	if set.Refusal != "" {
		return set, nil // nothing is written anyway
	}
	missing := r.missing(namespace.Name, found, set)
	why := ""
	if len(missing) > 0 {
		var err error
		if why, err = r.definitions.hold(ctx, found, missing); err != nil {
			return set, err
		}
	}
	r.definitions.tell(ctx, namespace.Name, found, why)
	if why == "" {
		return set, nil
	}
	file := found.Data[profile.FileName]
	held := guarded{Result: render.Result{
		Namespaced: maps.Clone(set.Namespaced),
		Cluster:    maps.Clone(set.Cluster),
	}, withheld: set.withheld, held: why}
	inPlace := map[string]profile.Profile{}
	if document, _ := profile.Parse(profile.FileName, []byte(file)); document != nil {
		for _, p := range document.Profiles {
			inPlace[p.Name] = p
		}
	}
	for _, c := range downgrade.Candidates(namespace.Name, rendered.Parts, nil, nil) {
		p, is := inPlace[c.Profile.Name]
		if !is || !bytes.Equal(downgrade.Canonical(p), downgrade.Canonical(c.Profile)) {
			held.judge(c.Source, v1alpha1.ReasonNotWritten, why)
		}
	}
	_, valid, err := r.sealer.inPlace(ctx, namespace, found)
	if err != nil {
		return set, err
	}
	if !valid { // nothing that may be signed anew
		held.Refusal = why
		return held, nil
	}
	held.Data, held.Digest, held.Names = []byte(file), profile.Digest([]byte(file)), slices.Sorted(maps.Keys(inPlace))
	if held.state, err = r.guard.state(ctx, namespace, found, rendered); err != nil {
		return set, err
	}
	held.annotations = held.state.Annotations()
	return held, nil
}

// missing are the profiles of the set that is found in a namespace which another
// set has not.
func (r *namespaceReconciler) missing(namespace string, found *corev1.ConfigMap, set guarded) []string {
	if found == nil || found.Data[profile.FileName] == "" || found.Data[profile.FileName] == string(set.Data) {
		return nil
	}
	file := []byte(found.Data[profile.FileName])
	r.mu.Lock()
	inPlace := r.named[namespace]
	r.mu.Unlock()
	if digest := profile.Digest(file); inPlace.digest != digest {
		inPlace = named{digest: digest}
		if document, _ := profile.Parse(profile.FileName, file); document != nil {
			for _, p := range document.Profiles {
				inPlace.names = append(inPlace.names, p.Name)
			}
		}
		r.name(namespace, inPlace)
	}
	still := make(map[string]bool, len(set.Names))
	for _, name := range set.Names {
		still[name] = true
	}
	return slices.DeleteFunc(slices.Clone(inPlace.names), func(name string) bool { return still[name] })
}

// name remembers the names of the profiles in a namespace's set: to read them from
// the file of a large set takes half a second.
func (r *namespaceReconciler) name(namespace string, inPlace named) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.named[namespace] = inPlace
}
