// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// maxSentences is how many weakenings of one change a message lists.
const maxSentences = 10

// Verb is what an author must be allowed to do with an object, besides writing
// it, to make its profile weaker.
const Verb = "weaken"

// Kinds of objects that profiles come from.
const (
	KindNamespaced = "CryptoProfile"
	KindCluster    = "ClusterCryptoProfile"
)

// Source is the object that a profile comes from.
type Source struct {
	// Kind is KindNamespaced or KindCluster.
	Kind string
	// Namespace is empty for a ClusterCryptoProfile.
	Namespace string
	// Name is the object's metadata.name.
	Name string
}

// String returns what people call the object: `CryptoProfile "orders"`.
func (s Source) String() string { return fmt.Sprintf("%s %q", s.Kind, s.Name) }

// Resource returns the object's resource, such as "cryptoprofiles".
func (s Source) Resource() string { return strings.ToLower(s.Kind) + "s" }

// Change is a change of what is served under a name, in one namespace or alike in
// several, that makes it weaker.
type Change struct {
	// Source is the object that the new profile comes from.
	Source Source
	// Profile is the name that applications use.
	Profile string
	// Weakenings are what is weaker, never empty.
	Weakenings []Weakening
	// Digest identifies exactly this change: the object, the profile before and
	// after, and how often the name was allowed to become weaker before. So it
	// fits no other change, and this one not a second time.
	Digest string
	// Served is true if the old profile is in service, and stays in service while
	// the change is withheld. Otherwise the old profile was removed before, and
	// nothing is served under the name.
	Served bool
	// Unknown is true if the old profile is not remembered, and may have been stronger.
	Unknown bool
}

// newChange describes a change that is weaker. old is nil for a profile that is
// not known any more.
func newChange(source Source, old *profile.Profile, new profile.Profile, weakened int, weakenings []Weakening, served bool) Change {
	subject := struct {
		Kind, Namespace, Name, Profile string
		Weakened                       int
		Old, New                       string
	}{source.Kind, source.Namespace, source.Name, new.Name, weakened, "", string(Canonical(new))}
	if old != nil {
		subject.Old = string(Canonical(*old))
	}
	data, err := json.Marshal(subject)
	if err != nil {
		panic("downgrade: " + err.Error()) // strings and a number
	}
	sum := sha256.Sum256(data)
	return Change{source, new.Name, weakenings, "sha256:" + hex.EncodeToString(sum[:]), served, old == nil}
}

// Sentences says what gets weaker, a sentence each, and of many the first.
func (c Change) Sentences() []string {
	var sentences []string
	for i, w := range c.Weakenings {
		if i == maxSentences {
			return append(sentences, fmt.Sprintf("And %d more.", len(c.Weakenings)-i))
		}
		sentences = append(sentences, w.String()+".")
	}
	return sentences
}

// Withheld says that the change is withheld, why, and what to do.
func (c Change) Withheld() string {
	what := fmt.Sprintf("The profile %q is weaker than the one that was served, which is still served.", c.Profile)
	switch {
	case c.Unknown:
		what = fmt.Sprintf("The profile %q may be weaker than one that was served before, and is not served.", c.Profile)
	case !c.Served:
		what = fmt.Sprintf("The profile %q is weaker than the one that was served before it was removed, and is not served.", c.Profile)
	}
	return fmt.Sprintf("%s %s To allow exactly this change, somebody with the verb %q on it runs: %s", what, strings.Join(c.Sentences(), " "), Verb, Command(c))
}

// Allows reports whether the value of the annotation cryptobroker.io/allow-weaker
// has the digest of this change. It is one digest, or several with commas, for a
// ClusterCryptoProfile takes the place of other profiles in other namespaces.
func (c Change) Allows(annotation string) bool {
	return slices.ContainsFunc(strings.Split(annotation, ","), func(digest string) bool {
		return strings.TrimSpace(digest) == c.Digest
	})
}

// Command returns what a person runs to allow these changes, all of the same object.
func Command(changes ...Change) string {
	source := changes[0].Source
	where := ""
	if source.Namespace != "" {
		where = " --namespace " + source.Namespace
	}
	return fmt.Sprintf("kubectl annotate %s %s%s --overwrite %s", strings.ToLower(source.Kind), source.Name, where, Annotation(changes...))
}

// MaxDigests is how many changes one command allows, in 7 KiB. Once they are allowed, the
// next are named.
const MaxDigests = 100

// Annotation returns the annotation that allows these changes, as key=value; of many it
// allows the first.
func Annotation(changes ...Change) string {
	var digests []string
	for _, c := range changes {
		digests = append(digests, c.Digest)
	}
	slices.Sort(digests)
	digests = slices.Compact(digests)
	return v1alpha1.AllowWeakerAnnotation + "=" + strings.Join(digests[:min(len(digests), MaxDigests)], ",")
}
