// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"fmt"
	"slices"
)

// Use is what a call used of a profile: all values that a profile chooses or limits and that
// have few different values. It has nothing of the call's input and output. Calls whose uses
// are equal are counted together.
type Use struct {
	Operation Operation
	// Algorithm is made of the names of package algorithm: "sha-256", "aes-gcm",
	// "ecdsa-with-sha-256".
	Algorithm string
	// Keys are the keys of the call. SignCertificate has the key of the issuer and the key of
	// the subject. A hybrid signature has two keys. GenerateDataKey has the wrapping key and the
	// data key, and RewrapKey the old and the new wrapping key. The
	// Algorithm of the old one is the wrapping algorithm. The other elements are empty.
	Keys [2]UsedKey
	// Format is the format of the signature in SignData and VerifyData. GivenFormat is whether
	// the caller has asked for it. Otherwise the profile has chosen it.
	Format      SignatureFormat
	GivenFormat bool
	// GivenNonce is whether the caller has given the nonce of EncryptData.
	GivenNonce bool
	// TagSize is the size of the tag of EncryptData and DecryptData in bytes.
	TagSize uint8
	// SHA1Request is whether the request for a certificate was signed with SHA-1.
	SHA1Request bool
	// GivenContext is whether a data key is bound to a context.
	GivenContext bool
	Caller       Caller
}

// UsedKey is the kind of a key. It has nothing of the key itself.
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

// Effect is what becomes of calls when another profile takes the place of the profile that
// served them.
type Effect string

// The effects. The zero value means that the calls are served as before.
const (
	// Changed means that the calls are served with another algorithm, another size of the tag
	// or another format. What was made before does not match what is made then.
	Changed Effect = "changed"
	// Refused means that the calls are refused.
	Refused Effect = "refused"
)

// Effect returns what becomes of calls with this use under the profile, and why. It asks the
// same policies as a broker that serves a call. A nil profile is a profile that is not
// served.
//
// Effect does not know what a use does not have: names, periods and distribution points of
// certificates, and the public keys to which key ids are pinned.
func (c *Compiled) Effect(u Use) (effect Effect, why string) {
	if c == nil {
		return Refused, "no profile of this name is served"
	}
	if !c.callers.Allows(u.Caller) {
		return Refused, "the profile does not allow this caller"
	}
	return c.effect(u)
}

// effect is Effect whoever calls.
func (c *Compiled) effect(u Use) (effect Effect, why string) {
	i := slices.IndexFunc(c.assessments, func(a Assessment) bool { return a.Operation == u.Operation.String() })
	switch {
	case i < 0:
		return Refused, u.Operation.String() + " is not offered"
	case c.assessments[i].Refused:
		return Refused, c.assessments[i].FIPS.Reason
	}
	switch u.Operation {
	case OpHashData:
		return changed(u.Algorithm, c.hash.Algorithm().String())
	case OpEncryptData, OpDecryptData:
		return c.cipher.effect(u)
	case OpSignData, OpVerifyData:
		return c.signature.effect(u)
	case OpGenerateDataKey, OpWrapKey, OpUnwrapKey, OpRewrapKey, OpGetPublicKey, OpEncryptStream, OpDecryptStream:
		return c.dataKeys.effect(u)
	case OpInitSession, OpOpenRequest, OpSealReply, OpCloseSession, OpRekeySession:
		return c.session.effect(u)
	default:
		return c.certificate.effect(u)
	}
}

// changed is the effect of another algorithm.
func changed(before, after string) (Effect, string) {
	if before == after {
		return "", ""
	}
	return Changed, after + " instead of " + before
}

// refused is the effect of a reason to refuse calls.
func refused(why string) (Effect, string) {
	if why == "" {
		return "", ""
	}
	return Refused, why
}

func (c *CipherPolicy) effect(u Use) (Effect, string) {
	key := u.Keys[0]
	switch {
	case c.Keys().refusal(key) != "":
		return refused(c.Keys().refusal(key))
	case key.Bits != 8*c.KeySize():
		return Refused, fmt.Sprintf("keys of %d bits, expected %d bits", key.Bits, 8*c.KeySize())
	case u.Operation == OpEncryptData && u.GivenNonce && c.RandomNonce():
		return Refused, "the caller gives the nonce, expected none: the broker makes it"
	case u.Operation == OpEncryptData && !u.GivenNonce && !c.RandomNonce():
		return Refused, "the caller gives no nonce, expected one"
	case u.Operation == OpDecryptData && int(u.TagSize) != c.TagSize():
		return Refused, fmt.Sprintf("tags of %d bits, expected %d bits", 8*int(u.TagSize), 8*c.TagSize())
	case int(u.TagSize) != c.TagSize():
		return Changed, fmt.Sprintf("tags of %d bits instead of %d bits", 8*c.TagSize(), 8*int(u.TagSize))
	}
	return changed(u.Algorithm, c.Algorithm())
}

func (s *SignaturePolicy) effect(u Use) (Effect, string) {
	limits := s.Signs()
	if u.Operation == OpVerifyData {
		limits = s.Checks()
	}
	for i, key := range u.Keys {
		switch {
		case i >= len(s.components) && key == (UsedKey{}):
			continue
		case i >= len(s.components) || key == (UsedKey{}):
			return Refused, fmt.Sprintf("another number of keys, expected %d for %s", len(s.components), s.Algorithm())
		}
		if why := cmp.Or(s.Keys().refusal(key), wrongKey(key, s.components[i].Algorithm.Key().Name), limits.refusal(key)); why != "" {
			return Refused, why
		}
	}
	want, fixed := s.Format()
	switch {
	case u.Format == want || u.GivenFormat && !fixed:
	case !u.GivenFormat && u.Operation == OpSignData:
		return Changed, fmt.Sprintf("signatures in %s instead of %s", want, u.Format)
	default:
		return Refused, fmt.Sprintf("signatures in %s, expected %s", u.Format, want)
	}
	if u.Format == SignatureCMS && !HasCMS(s.components) {
		return Refused, "signatures in CMS, which " + s.Algorithm() + " does not have"
	}
	return changed(u.Algorithm, s.Algorithm())
}

func (p *CertificatePolicy) effect(u Use) (Effect, string) {
	issuer, subject := u.Keys[0], u.Keys[1]
	subjects := p.SubjectKeys().refusal(subject)
	if subjects != "" {
		subjects = "subjects with " + subjects
	}
	if why := cmp.Or(p.Keys().refusal(issuer), wrongKey(issuer, p.IssuerKey()), p.IssuerKeys().refusal(issuer), subjects); why != "" {
		return Refused, why
	}
	if u.SHA1Request && (p.RequiresFIPS() || !p.AllowsSHA1Requests()) {
		return Refused, "requests that are signed with SHA-1"
	}
	return changed(u.Algorithm, p.Algorithm())
}

// wrongKey returns why a key does not fit an algorithm of keys, or nothing.
func wrongKey(key UsedKey, want string) string {
	if key.Algorithm == want {
		return ""
	}
	return fmt.Sprintf("%s keys, expected %s keys", key.Algorithm, want)
}

// refusal returns why the limits do not allow a key, or nothing.
func (l KeyLimits) refusal(key UsedKey) string {
	size, listed := l.Range(key.Algorithm)
	switch {
	case key.Bits == 0: // the algorithm has one size
		return ""
	case !listed:
		return key.Algorithm + " keys"
	case l.Allow(key.Algorithm, key.Bits):
		return ""
	case size.MinKeySize == size.MaxKeySize:
		return fmt.Sprintf("%s keys of %d bits, expected %d bits", key.Algorithm, key.Bits, size.MinKeySize)
	default:
		return fmt.Sprintf("%s keys of %d bits, expected %d to %d bits", key.Algorithm, key.Bits, size.MinKeySize, size.MaxKeySize)
	}
}

// refusal returns why calls may not take this key from where it is, or nothing.
func (p *KeyPolicy) refusal(key UsedKey) string {
	_, external := p.Manager()
	switch {
	case key.ID == "" && p.ByReference():
		return "keys of requests, expected one of the keys in KeyIds"
	case key.ID == "":
		return ""
	case external && p.file != "" && !p.ByReference():
		return ""
	case external && p.file == "":
		return "keys of the broker, expected keys of an external key manager"
	case !p.ByReference():
		return "keys of the broker, expected keys of requests"
	case !p.Allows(key.ID):
		return fmt.Sprintf("the key %q, which KeyIds does not list", key.ID)
	default:
		return ""
	}
}
