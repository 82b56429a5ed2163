// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/effective"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// change has the changes of manifests in a namespace.
type change struct {
	namespace string
	// before has the served profiles that change, and after has the profiles that replace them. A
	// profile that is no longer served is missing in after.
	before, after []profile.Profile
}

// versions are the two sides of a change, compiled for brokers that require FIPS 140-3 or do
// not.
type versions struct{ before, after map[string]*profile.Compiled }

// in returns the changes of the manifests in a namespace, and notes about manifests without an
// effect there. The change is nil if brokers would serve the same.
func (p *Profiles) in(set *effective.Set, now metav1.Time) (changed *change, notes []string) {
	namespace := set.Namespace.Name
	var names []string
	namespaced, cluster := slices.Clone(set.Namespaced), slices.Clone(set.Cluster)
	for _, wanted := range p.Namespaced {
		if wanted.Namespace != namespace {
			continue
		}
		names = append(names, render.Name(wanted.Name, &wanted.Spec))
		wanted.CreationTimestamp = now
		if i := slices.IndexFunc(namespaced, func(o v1alpha1.CryptoProfile) bool { return o.Name == wanted.Name }); i >= 0 {
			names = append(names, render.Name(wanted.Name, &namespaced[i].Spec))
			namespaced[i].Spec = wanted.Spec
		} else {
			namespaced = append(namespaced, wanted)
		}
	}
	for _, wanted := range p.Cluster {
		names = append(names, render.Name(wanted.Name, &wanted.Spec.ProfileSpec))
		wanted.CreationTimestamp = now
		if i := slices.IndexFunc(cluster, func(o v1alpha1.ClusterCryptoProfile) bool { return o.Name == wanted.Name }); i >= 0 {
			names = append(names, render.Name(wanted.Name, &cluster[i].Spec.ProfileSpec))
			cluster[i].Spec = wanted.Spec
		} else {
			cluster = append(cluster, wanted)
		}
	}
	result := render.Effective(namespaced, cluster, set.Namespace)
	if result.Refusal != "" {
		return nil, []string{fmt.Sprintf("namespace %s: %s", namespace, result.Refusal)}
	}
	for _, wanted := range p.Namespaced {
		if verdict := result.Namespaced[wanted.Name]; wanted.Namespace == namespace && !verdict.Accepted {
			notes = append(notes, fmt.Sprintf("namespace %s: %s %q would not count: %s", namespace, downgrade.KindNamespaced, wanted.Name, verdict.Message))
		}
	}
	changed = &change{namespace: namespace}
	before, after := set.ServedProfiles(), profilesOf(result.Parts)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		served, next := find(before, name), find(after, name)
		if served == nil {
			continue
		}
		if next != nil && bytes.Equal(downgrade.Canonical(*served), downgrade.Canonical(*next)) {
			continue
		}
		changed.before = append(changed.before, *served)
		if next != nil {
			changed.after = append(changed.after, *next)
		}
	}
	if len(changed.before) == 0 {
		return nil, notes
	}
	return changed, notes
}

func profilesOf(parts []render.Part) (all []profile.Profile) {
	for _, part := range parts {
		all = append(all, part.Profile)
	}
	return all
}

func find(all []profile.Profile, name string) *profile.Profile {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// compile compiles both sides as brokers do.
func (c *change) compile(options ...profile.CompileOption) versions {
	return versions{compiled(c.before, options), compiled(c.after, options)}
}

func compiled(profiles []profile.Profile, options []profile.CompileOption) map[string]*profile.Compiled {
	all := map[string]*profile.Compiled{}
	set, _ := profile.CompileDocument(&profile.Document{Profiles: profiles}, options...) // a broker serves no invalid profile either
	for _, p := range profiles {
		if set != nil {
			if c, ok := set.Lookup(p.Name); ok {
				all[p.Name] = c
			}
		}
	}
	return all
}

// uncounted returns the values that a change of a profile restricts and that brokers do not
// count. It is empty if brokers count all of them.
func (c *change) uncounted(name string, operation string) string {
	before, after := find(c.before, name), find(c.after, name)
	if after == nil {
		return ""
	}
	if before, after := before.API.SignCertificate, after.API.SignCertificate; operation == profile.OpSignCertificate.String() && before != nil && after != nil {
		if before.Validity != after.Validity || !reflect.DeepEqual(before.SubjectAltNames, after.SubjectAltNames) ||
			!reflect.DeepEqual(before.CRLDistributionPoints, after.CRLDistributionPoints) || !reflect.DeepEqual(before.BasicConstraints, after.BasicConstraints) {
			return "names, periods and distribution points of certificates, which change"
		}
	}
	if before, after := before.API.Session, after.API.Session; profile.Section(operation) == "API.Session" && before != nil && after != nil && narrower(before, after) {
		return "the times and numbers of messages of sessions, which become narrower"
	}
	if !reflect.DeepEqual(pins(&before.API, operation), pins(&after.API, operation)) {
		return "the public keys to which KeyIds are pinned, which change"
	}
	return ""
}

// narrower reports whether sessions of the second section end earlier, or refuse requests whose
// time the first one accepts.
func narrower(before, after *profile.Session) bool {
	_, longest := before.Lifetimes()
	_, now := after.Lifetimes()
	return now < longest || after.Window() < before.Window() || after.Messages() < before.Messages()
}

// pins returns the pins of an operation by the id of the key.
func pins(api *profile.API, operation string) map[string]string {
	pinned := map[string]string{}
	op, _ := profile.FindOperation(operation)
	for _, key := range api.ListedKeys(op) {
		if key.SPKISHA256 != "" {
			pinned[key.ID] = key.SPKISHA256
		}
	}
	return pinned
}
