// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

// signs reports whether the list has a version that signs.
func (s *Session) signs() bool { return slices.ContainsFunc(s.versions(), algorithm.Session.IsNative) }

// signature returns the signature of the section as a section of SignData. The signature has one
// format, so clients know it.
func (s *Session) signature() *SignData {
	return &SignData{
		SignAlg: s.SignAlg, HashAlg: s.HashAlg, SignatureFormat: SignatureRAW.String(), KeyIDs: s.KeyIDs,
		KeyConstraints: keyrules.Constraints{Issuer: SessionKeyLimits()},
	}
}

// SessionKeyLimits returns the limits of keys that sign for sessions: all keys with a security
// strength of 128 bits, which the key agreement has.
func SessionKeyLimits() keyrules.Limits {
	return keyrules.Limits{
		algorithm.RSAKey:     {MinKeySize: 3072, MaxKeySize: algorithm.MaxRSASize},
		algorithm.ECDSAKey:   {MinKeySize: 256, MaxKeySize: 521},
		algorithm.Ed25519Key: {MinKeySize: 256, MaxKeySize: 256},
	}
}

// validateAgreement checks KeyAgreementAlg, which the native versions do not have.
func (s *Session) validateAgreement(v validator, at yamlfile.Place) {
	where, versions := at.Field("KeyAgreementAlg"), s.versions()
	if len(versions) == 0 || slices.ContainsFunc(versions, func(version algorithm.Session) bool { return !version.IsNative() }) {
		v.Enum(where, at, s.KeyAgreementAlg, []string{algorithm.SessionKeyAgreement})
		return
	}
	if s.KeyAgreementAlg != "" {
		v.Add(where, at, "found %s, expected none: the key agreement of %s is fixed", yamlfile.Excerpt(s.KeyAgreementAlg), versions[0])
	}
}

// validateSigning checks the algorithm and the key with which the native versions sign.
func (s *Session) validateSigning(v validator, at yamlfile.Place) {
	list := at.Field("KeyIds")
	if !s.signs() {
		for field, given := range map[string]bool{"SignAlg": s.SignAlg != "", "HashAlg": s.HashAlg != "", "KeyIds": len(s.KeyIDs) > 0} {
			if given {
				v.Add(at.Field(field), at, "has no effect, because no protocol in Protocols signs; leave it out, or add %q", algorithm.SessionHPKEP256)
			}
		}
		return
	}
	if strings.EqualFold(s.Store, redisStore) {
		v.Add(at.Field("Store"), at, "found %q, expected %q: sessions of native protocols are in the memory of one broker", redisStore, memoryStore)
	}
	signatures := slices.Concat(algorithm.Signatures(algorithm.Classical), algorithm.Signatures(algorithm.PostQuantum))
	v.Enum(at.Field("SignAlg"), at, s.SignAlg, signatures)
	if s.SignAlg != "" {
		v.signHash(at, s.SignAlg, s.HashAlg, algorithm.Digests(algorithm.ForSignatures))
	}
	switch {
	case len(s.KeyIDs) == 0 && !v.Present(list):
		v.Required(list, at, "the key of the broker that signs its share of the key agreement")
	case len(s.KeyIDs) > 1:
		v.Add(list, at, "has %d keys, expected only the key that signs", len(s.KeyIDs))
	case keyrules.AllowsAny(s.KeyIDs):
		v.Add(list.Index(0).Field("Id"), list, "found %q, which stands for every key of the broker, expected only the key that signs", keyrules.AnyID)
	default:
		keyrules.CheckIDs(v.Report, list, s.KeyIDs)
	}
}

func (s *Session) warn(w warner, at yamlfile.Place, p *Profile, manager *KMS) {
	if !s.signs() {
		return
	}
	w.external(at, s.KeyIDs, manager)
	if other := p.API.SignData; other != nil && (keyrules.AllowsAny(other.KeyIDs) && !strings.Contains(s.KeyIDs[0].ID, "/") ||
		slices.ContainsFunc(other.KeyIDs, func(key keyrules.ID) bool { return key.ID == s.KeyIDs[0].ID })) {
		w.Add(at.Field("KeyIds"), at, "has a key that SignData signs with as well, so whoever may call SignData can sign a share of the key agreement; use a key of its own")
	}
}

// Signing returns the signature policy of the native versions, and the id of the key. It returns
// nil if the profile allows no native version.
func (s *SessionPolicy) Signing() (policy *SignaturePolicy, keyID string) { return s.signing, s.keyID }

// Keys returns the key with which the native versions sign, or nil if there is none.
func (s *SessionPolicy) Keys() *keyrules.Policy {
	if s.signing == nil {
		return nil
	}
	return s.signing.Keys()
}

// signatureEffect returns the effect on a session whose server share is signed.
func (s *SessionPolicy) signatureEffect(u Use) (Effect, string) {
	key := u.Keys[0]
	if key.ID != s.keyID { // the clients of the session know the public key of another one
		return Changed, "signed with the key " + s.keyID + " instead of " + key.ID
	}
	signs := s.signing.components[0].Algorithm.Key().Name
	return refused(cmp.Or(s.signing.Keys().Refusal(key.ID), wrongKey(key, signs), s.signing.Signs().Refusal(key.Algorithm, key.Bits)))
}

func (s *SessionPolicy) signatureExtremes(u Use) (all []Use) {
	for _, smallest := range []bool{true, false} {
		u.Keys[0] = extreme(s.signing.Signs(), s.signing.components[0].Algorithm.Key().Name, smallest)
		u.Keys[0].ID = s.keyID
		all = append(all, u)
	}
	return all
}
