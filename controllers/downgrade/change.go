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

// maxSentences is the maximum number of weakenings of one change that a message lists.
const maxSentences = 10

// Verb is the verb that an author needs on an object, in addition to the right to write it, to
// make its profile weaker.
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

// String returns the object for messages: `CryptoProfile "orders"`.
func (s Source) String() string { return fmt.Sprintf("%s %q", s.Kind, s.Name) }

// Resource returns the object's resource, such as "cryptoprofiles".
func (s Source) Resource() string { return strings.ToLower(s.Kind) + "s" }

// Change is a change that makes the profile of a name weaker, in one namespace or equally in
// several.
type Change struct {
	// Source is the object that the new profile comes from.
	Source Source
	// Profile is the name that applications use.
	Profile string
	// Weakenings are the weaker fields. There is at least one.
	Weakenings []Weakening
	// Digest identifies exactly this change: the object, the profile before and after, and how
	// often the name was allowed to become weaker before. So it fits no other change, and fits
	// this change only once.
	Digest string
	// Served reports whether the old profile is in service. Then it stays in service while the
	// change is withheld. Otherwise the old profile was removed before, and nothing is served
	// under the name.
	Served bool
	// Unknown reports whether the old profile is not remembered, so that it may have been
	// stronger.
	Unknown bool
}

// newChange describes a change to a weaker profile. old is nil for a profile that is not known
// any more.
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

// Sentences returns a sentence for each weakening. If there are many, it returns the first ones.
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

// Withheld returns the message that the change is withheld, with the reason and advice.
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

// Allows reports whether the value of the annotation cryptobroker.io/allow-weaker has the digest
// of this change. The value is one digest, or several with commas, because a ClusterCryptoProfile
// may replace different profiles in different namespaces.
func (c Change) Allows(annotation string) bool {
	return slices.ContainsFunc(strings.Split(annotation, ","), func(digest string) bool {
		return strings.TrimSpace(digest) == c.Digest
	})
}

// Command returns the command that allows these changes, all of the same object.
func Command(changes ...Change) string {
	source := changes[0].Source
	where := ""
	if source.Namespace != "" {
		where = " --namespace " + source.Namespace
	}
	return fmt.Sprintf("kubectl annotate %s %s%s --overwrite %s", strings.ToLower(source.Kind), source.Name, where, Annotation(changes...))
}

// MaxDigests is the maximum number of changes that one command allows, in 7 KiB. Once they are
// allowed, the next are named.
const MaxDigests = 100

// Annotation returns the annotation that allows these changes, as key=value. If there are many,
// it allows the first ones.
func Annotation(changes ...Change) string {
	var digests []string
	for _, c := range changes {
		digests = append(digests, c.Digest)
	}
	slices.Sort(digests)
	digests = slices.Compact(digests)
	return v1alpha1.AllowWeakerAnnotation + "=" + strings.Join(digests[:min(len(digests), MaxDigests)], ",")
}
