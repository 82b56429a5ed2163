// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// MaxSetSize is the maximum size in bytes of a namespace's profile file. A ConfigMap holds 1 MiB.
// The rest is for the signature.
const MaxSetSize = 1<<20 - 16<<10

// Version identifies the spec of an object. An object that was deleted and created again has
// another UID, and the same generation.
type Version struct {
	UID        types.UID
	Generation int64
}

// VersionOf returns the version of an object.
func VersionOf(object metav1.Object) Version {
	return Version{object.GetUID(), object.GetGeneration()}
}

// Verdict says whether an object is part of its namespace's set.
type Verdict struct {
	// Version is the version of the object that the verdict is about.
	Version Version
	// Accepted reports whether the object is part of the set.
	Accepted bool
	// NoRoom reports whether the rollout has reached brokers, but the set has no room for both
	// profiles. Then brokers get the old profile.
	NoRoom bool
	// Reason is a reason of the condition Accepted.
	Reason string
	// Message is one sentence, or several if several fields are wrong.
	Message string
	// Held says why the whole set stays unchanged. It is empty if the set is not held.
	Held string
	// Rolling is the digest of the profile while its rollout has not reached all brokers of the
	// set. It is empty otherwise.
	Rolling string
}

// Result is the rendered set of a namespace.
type Result struct {
	// Data is the profile file, or nil if there is none to write (see Refusal).
	Data []byte
	// Digest identifies Data.
	Digest string
	// Names are the names of the profiles in Data, sorted.
	Names []string
	// Parts are the profiles in Data, in the order of Names.
	Parts []Part
	// NamesKeyProviders is true when a profile in Data lists a key of a key provider.
	NamesKeyProviders bool
	// Refusal says why no file can be written although there are profiles. Then the previous file
	// stays. If Refusal is empty, Data has to be written.
	Refusal string
	// Namespaced and Cluster are the verdicts by metadata.name. A ClusterCryptoProfile that does
	// not select the namespace has no verdict.
	Namespaced, Cluster map[string]Verdict
}

// Part is one profile of a set and the object that it comes from.
type Part struct {
	Profile profile.Profile
	// Cluster is true for a ClusterCryptoProfile; Object is metadata.name.
	Cluster bool
	Object  string
}

// Effective merges the profiles that apply in a namespace: its CryptoProfiles, all of which must
// be of this namespace, and the ClusterCryptoProfiles that select it. Objects that are being
// deleted are ignored.
//
// A profile name belongs to one object. A ClusterCryptoProfile precedes a CryptoProfile, and
// otherwise the older object precedes the younger. The others are in conflict and not part of the
// set, even if the object that has the name is invalid. So an invalid policy is never replaced by
// another one.
//
// The profiles are sorted by name. Invalid profiles are left out, and CryptoProfiles for which
// there is no room (see fitting). If no profile is left, the file is an empty list, and brokers
// with it refuse every call.
func Effective(namespaced []v1alpha1.CryptoProfile, cluster []v1alpha1.ClusterCryptoProfile, ns *corev1.Namespace) Result {
	result := Result{Namespaced: map[string]Verdict{}, Cluster: map[string]Verdict{}}
	candidates := settle(collect(namespaced, cluster, ns), &result)

	data, parts, err := compile(candidates)
	if err != nil || len(data) > MaxSetSize { // find out which are invalid; a file that is too large was not compiled
		candidates = slices.DeleteFunc(candidates, func(c candidate) bool {
			errs := Validate(c.object, c.spec)
			if len(errs) == 0 {
				return false
			}
			result.judge(c, Verdict{Reason: v1alpha1.ReasonInvalid, Message: Sentence(errs)})
			return true
		})
		data, parts, err = compile(candidates)
	}
	if err == nil && len(data) > MaxSetSize {
		if candidates, err = fitting(candidates, len(data), &result); err == nil {
			data, parts, err = compile(candidates)
		}
	}
	verdict := Verdict{Accepted: true, Reason: v1alpha1.ReasonValid, Message: "The profile is part of the namespace's set."}
	switch {
	case err != nil:
		result.Refusal = "The broker's compiler refuses the set of all profiles of the namespace: " + err.Error()
		verdict = Verdict{Reason: v1alpha1.ReasonInvalid, Message: result.Refusal}
	case len(data) > MaxSetSize:
		result.Refusal = fmt.Sprintf("The %d ClusterCryptoProfiles of the namespace take %d bytes, and a set has at most %d; nothing of it is written, and brokers keep the set that they have.", len(candidates), len(data), MaxSetSize)
		verdict = Verdict{Reason: v1alpha1.ReasonTooLarge, Message: result.Refusal}
	default:
		result.Data, result.Digest, result.Parts = data, profile.Digest(data), parts
		for _, part := range parts {
			result.Names = append(result.Names, part.Profile.Name)
			result.NamesKeyProviders = result.NamesKeyProviders || profile.NamesKeyProviders([]profile.Profile{part.Profile})
		}
	}
	for _, c := range candidates {
		result.judge(c, verdict)
	}
	return result
}

// Selects reports whether a ClusterCryptoProfile selects a namespace with these labels. A profile
// whose selector cannot be read selects none.
func Selects(spec *v1alpha1.ClusterProfileSpec, namespaceLabels map[string]string) bool {
	return Selector(spec).Matches(labels.Set(namespaceLabels))
}

// Selector returns the selector of a ClusterCryptoProfile, for callers that ask about many
// namespaces.
func Selector(spec *v1alpha1.ClusterProfileSpec) labels.Selector {
	return NamespaceSelector(spec.NamespaceSelector)
}

// NamespaceSelector returns the selector of a cluster profile or a cluster key provider. An
// absent selector selects all namespaces. A selector that cannot be read selects none.
func NamespaceSelector(spec *metav1.LabelSelector) labels.Selector {
	if spec == nil {
		return labels.Everything()
	}
	selector, err := metav1.LabelSelectorAsSelector(spec)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// Sentence returns one message with a sentence for each error.
func Sentence(errs field.ErrorList) string {
	sentences := make([]string, len(errs))
	for i, err := range errs {
		sentences[i] = err.Field + ": " + err.Detail + "."
	}
	return strings.Join(sentences, " ")
}

// candidate is an object that applies to the namespace.
type candidate struct {
	profileName string
	cluster     bool
	object      string // metadata.name
	created     metav1.Time
	version     Version
	spec        *v1alpha1.ProfileSpec
}

// kind returns the object's kind, for messages.
func (c candidate) kind() string {
	if c.cluster {
		return "ClusterCryptoProfile"
	}
	return "CryptoProfile"
}

func collect(namespaced []v1alpha1.CryptoProfile, cluster []v1alpha1.ClusterCryptoProfile, ns *corev1.Namespace) []candidate {
	var all []candidate
	for i := range namespaced {
		o := &namespaced[i]
		if o.DeletionTimestamp.IsZero() {
			all = append(all, candidate{Name(o.Name, &o.Spec), false, o.Name, o.CreationTimestamp, VersionOf(o), &o.Spec})
		}
	}
	for i := range cluster {
		o := &cluster[i]
		if o.DeletionTimestamp.IsZero() && Selects(&o.Spec, ns.Labels) {
			all = append(all, candidate{Name(o.Name, &o.Spec.ProfileSpec), true, o.Name, o.CreationTimestamp, VersionOf(o), &o.Spec.ProfileSpec})
		}
	}
	return all
}

// settle assigns each profile name to one object, and returns these objects sorted by profile
// name.
func settle(all []candidate, result *Result) []candidate {
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(a.profileName, b.profileName),
			-compareBool(a.cluster, b.cluster),
			a.created.Compare(b.created.Time),
			cmp.Compare(a.object, b.object),
		)
	})
	var settled []candidate
	for _, c := range all {
		if n := len(settled); n > 0 && settled[n-1].profileName == c.profileName {
			owner := settled[n-1]
			why := "is older"
			if owner.cluster && !c.cluster {
				why = "counts before a CryptoProfile"
			}
			result.judge(c, Verdict{
				Reason:  v1alpha1.ReasonConflict,
				Message: fmt.Sprintf("The profile name %q belongs to %s %q, which %s.", c.profileName, owner.kind(), owner.object, why),
			})
			continue
		}
		settled = append(settled, c)
	}
	return settled
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// compile renders the candidates and compiles them with the broker's compiler.
func compile(candidates []candidate) (data []byte, parts []Part, err error) {
	document := &profile.Document{Profiles: []profile.Profile{}}
	for _, c := range candidates {
		p, err := Document(c.object, c.spec)
		if err != nil {
			return nil, nil, err
		}
		document.Profiles = append(document.Profiles, p)
		parts = append(parts, Part{Profile: p, Cluster: c.cluster, Object: c.object})
	}
	data, err = profile.Marshal(document)
	if err != nil {
		return nil, nil, err
	}
	if len(data) > MaxSetSize { // the compiler would refuse it, too
		return data, parts, nil
	}
	_, problems := profile.CompileWritten(document, data)
	return data, parts, problems.Err()
}

func (r *Result) judge(c candidate, verdict Verdict) {
	verdict.Version = c.version
	if c.cluster {
		r.Cluster[c.object] = verdict
		return
	}
	r.Namespaced[c.object] = verdict
}
