// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/callers"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

// Use describes what a call used of a profile: the values that a profile chooses or limits, if
// they have few different values. It has no part of the input and output of the call. Calls whose
// uses are equal are counted together.
type Use struct {
	Operation Operation
	// Algorithm combines names of package algorithm: "sha-256", "aes-gcm", "ecdsa-with-sha-256".
	Algorithm string
	// Keys are the keys of the call. SignCertificate has the key of the issuer and the key of the
	// subject. A hybrid signature has two keys. GenerateDataKey has the wrapping key and the data
	// key, and RewrapKey the old and the new wrapping key. The Algorithm of the old wrapping key
	// is the wrapping algorithm. Unused elements are empty.
	Keys [2]UsedKey
	// Format is the format of the signature in SignData and VerifyData. GivenFormat reports
	// whether the caller has asked for it. Otherwise the profile has chosen it.
	Format      SignatureFormat
	GivenFormat bool
	// GivenNonce reports whether the caller has given the nonce of EncryptData.
	GivenNonce bool
	// TagSize is the size of the tag of EncryptData and DecryptData in bytes.
	TagSize uint8
	// SHA1Request reports whether the request for a certificate was signed with SHA-1.
	SHA1Request bool
	// GivenContext reports whether a data key is bound to a context.
	GivenContext bool
	Caller       callers.Caller
}

// UsedKey is the kind of a key. It has no part of the key itself.
type UsedKey struct {
	// Algorithm is the name in package algorithm, such as "RSA", or "AES".
	Algorithm string
	// Bits is the size of the key. It is 0 if the name of the algorithm has the size.
	Bits int
	// ID is the id of the broker's key. It is empty for a key that came with the request.
	ID string
}

// AESKey is the name of keys of AES in a [UsedKey].
const AESKey = "AES"

// String returns the key for people, such as "RSA 2048" or `RSA 2048 "orders"`.
func (k UsedKey) String() string {
	text := k.Algorithm
	if k.Bits > 0 {
		text = fmt.Sprintf("%s %d", k.Algorithm, k.Bits)
	}
	if k.ID != "" {
		text += fmt.Sprintf(" %q", k.ID)
	}
	return text
}

// Effect is the effect on calls if another profile replaces the profile that served them.
type Effect string

// The effects. The zero value means that the calls are served as before.
const (
	// Changed means that the calls are served with another algorithm, another size of the tag or
	// another format. New results do not match earlier ones.
	Changed Effect = "changed"
	// Refused means that the calls are refused.
	Refused Effect = "refused"
)

// Effect returns the effect on calls with this use if the profile serves them, and the reason. It
// asks the same policies as a broker that serves a call. A nil profile stands for a profile that
// is not served.
//
// Effect does not consider values that are not in a use: names, periods and distribution points
// of certificates, and the public keys to which key ids are pinned.
func (c *Compiled) Effect(u Use) (effect Effect, why string) {
	if c == nil {
		return Refused, "no profile of this name is served"
	}
	if !c.callers.Allows(u.Caller) {
		return Refused, "the profile does not allow this caller"
	}
	return c.effect(u)
}

// effect is Effect without the check of the caller.
func (c *Compiled) effect(u Use) (effect Effect, why string) {
	switch a := c.Assessment(u.Operation); {
	case a == nil:
		return Refused, u.Operation.String() + " is not offered"
	case a.Refused:
		return Refused, a.FIPS.Reason
	}
	return sections[sectionOfOperation[u.Operation]].policy(c).effect(u)
}

// changed returns the effect of another algorithm.
func changed(before, after string) (Effect, string) {
	if before == after {
		return "", ""
	}
	return Changed, after + " instead of " + before
}

// refused returns the effect of a reason to refuse calls.
func refused(why string) (Effect, string) {
	if why == "" {
		return "", ""
	}
	return Refused, why
}

// wrongKey returns why a key does not fit an algorithm of keys, or an empty text.
func wrongKey(key UsedKey, want string) string {
	if key.Algorithm == want {
		return ""
	}
	return fmt.Sprintf("%s keys, expected %s keys", key.Algorithm, want)
}

// Lost returns what the profile offers and the profile after does not offer: operations,
// algorithms, keys, formats and callers. Each is a phrase such as "SignData: RSA keys of 2048
// bits, expected 3072 to 4096 bits". For a range, such as sizes of keys, it compares the smallest
// and the largest value.
func (c *Compiled) Lost(after *Compiled) []string {
	var lost []string
	add := func(phrase string) {
		if !slices.Contains(lost, phrase) {
			lost = append(lost, phrase)
		}
	}
	for _, a := range c.assessments {
		if a.Refused {
			continue
		}
		op, _ := FindOperation(a.Operation)
		for _, u := range sections[sectionOfOperation[op]].policy(c).extremes(op) {
			if effect, _ := c.effect(u); effect == Refused {
				continue // such as a format that the algorithm does not have
			}
			_, why := after.effect(u)
			switch {
			case why == "":
			case strings.HasPrefix(why, a.Operation):
				add(why)
			default:
				add(a.Operation + ": " + why)
			}
		}
	}
	for _, who := range c.callers.Lost(after.callers) {
		add(who)
	}
	return lost
}

// Primitives returns the primitives of the algorithm and the keys of the use. A hybrid has two
// halves, and an attacker has to break both. All others have one half, which is as weak as its
// weakest primitive. There is no half if the calls used no cryptography, such as a batch of which
// no key was unwrapped. Primitives reports false for algorithms and sizes that this version does
// not know.
func (u Use) Primitives() (halves [][]algorithm.Primitive, known bool) {
	return sections[sectionOfOperation[u.Operation]].primitives(u)
}

// Objection returns why FIPS 140-3 does not approve the calls, as a sentence without a full stop.
// It is empty if FIPS 140-3 approves them. Call it only if [Use.Primitives] reports true.
func (u Use) Objection() string { return sections[sectionOfOperation[u.Operation]].objection(u) }

// extreme returns the smallest or the largest key of an algorithm that limits allow.
func extreme(limits keyrules.Limits, name string, smallest bool) UsedKey {
	size, _ := limits.Range(name) // 0 bits if the algorithm has one size
	if smallest {
		return UsedKey{Algorithm: name, Bits: size.MinKeySize}
	}
	return UsedKey{Algorithm: name, Bits: size.MaxKeySize}
}
