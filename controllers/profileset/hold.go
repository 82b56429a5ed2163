// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// hold returns the set for a namespace: the decided set, or the current set if it has profiles
// that disappeared with their resource definition.
func (r *reconciler) hold(ctx context.Context, from sources, set guarded) (guarded, error) {
	if set.Refusal != "" {
		return set, nil // nothing is written anyway
	}
	missing := r.missing(from, set)
	why := ""
	if len(missing) > 0 {
		var err error
		if why, err = r.definitions.reasonToHold(ctx, from.found, missing); err != nil {
			return set, err
		}
	}
	r.definitions.report(ctx, from, why)
	if why == "" {
		return set, nil
	}
	return r.held(ctx, from, set, why)
}

// held returns the current set instead of the decided set.
func (r *reconciler) held(ctx context.Context, from sources, set guarded, why string) (guarded, error) {
	held := guarded{Result: render.Result{
		Namespaced: maps.Clone(set.Namespaced),
		Cluster:    maps.Clone(set.Cluster),
	}, withheld: set.withheld, held: why}
	file := []byte(from.found.Data[profile.FileName])
	inPlace := map[string]profile.Profile{}
	if document, _ := profile.Parse(profile.FileName, file); document != nil {
		for _, p := range document.Profiles {
			inPlace[p.Name] = p
		}
		held.NamesKeyProviders = profile.NamesKeyProviders(document.Profiles)
	}
	for _, c := range downgrade.Candidates(from.namespace.Name, from.rendered.Parts, nil, nil) {
		p, is := inPlace[c.Profile.Name]
		if !is || !bytes.Equal(downgrade.Canonical(p), downgrade.Canonical(c.Profile)) {
			held.refuse(c.Source, v1alpha1.ReasonNotWritten, why)
		}
	}
	_, valid, err := r.sealer.setInPlace(ctx, from.namespace, from.found)
	if err != nil {
		return set, err
	}
	if !valid { // the operator must not sign what somebody else wrote
		held.Refusal = why
		return held, nil
	}
	held.Data, held.Digest, held.Names = file, profile.Digest(file), slices.Sorted(maps.Keys(inPlace))
	if held.state, err = r.guard.served(ctx, from); err != nil {
		return set, err
	}
	held.annotations = held.state.Annotations()
	return held, nil
}

// missing returns the profiles that the current set has and another set lacks.
func (r *reconciler) missing(from sources, set guarded) []string {
	if from.found == nil || from.found.Data[profile.FileName] == "" || from.found.Data[profile.FileName] == string(set.Data) {
		return nil
	}
	file := []byte(from.found.Data[profile.FileName])
	inPlace := r.namespaces.Of(from.namespace).Contents
	if digest := profile.Digest(file); inPlace.Digest != digest {
		inPlace = state.Contents{Digest: digest}
		if document, _ := profile.Parse(profile.FileName, file); document != nil {
			for _, p := range document.Profiles {
				inPlace.Names = append(inPlace.Names, p.Name)
			}
		}
		r.namespaces.Update(from.namespace, func(known *state.Namespace) { known.Contents = inPlace })
	}
	still := make(map[string]bool, len(set.Names))
	for _, name := range set.Names {
		still[name] = true
	}
	return slices.DeleteFunc(slices.Clone(inPlace.Names), func(name string) bool { return still[name] })
}
