// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
)

// Primitives returns what the algorithm and the keys of the use are made of. A hybrid has two
// halves, and an attacker has to break both; everything else has one, which is as weak as its
// weakest primitive. There is none if the calls used no cryptography, as a batch of which no key was
// unwrapped. Primitives reports false for algorithms and sizes that this version does not know.
func (u Use) Primitives() (halves [][]algorithm.Primitive, known bool) {
	switch u.Operation {
	case OpHashData:
		digest, known := algorithm.FindDigest(u.Algorithm)
		if !known {
			return nil, false
		}
		return oneHalf(digest.Primitive()), true
	case OpEncryptData, OpDecryptData:
		cipher, known := algorithm.FindCipher(u.Algorithm)
		if !known || u.Keys[0].Algorithm != AESKey || !slices.Contains(cipher.KeySizes(), u.Keys[0].Bits) {
			return nil, false
		}
		return oneHalf(algorithm.AESPrimitive(u.Keys[0].Bits)), true
	case OpSignData, OpVerifyData:
		return signaturePrimitives(u.Algorithm, u.Keys[:])
	case OpSignCertificate:
		halves, known := signaturePrimitives(u.Algorithm, u.Keys[:1])
		subject, found := keyPrimitive(u.Keys[1])
		if !known || !found {
			return nil, false
		}
		halves[0] = append(halves[0], subject)
		if u.SHA1Request {
			halves[0] = append(halves[0], algorithm.SHA1.Primitive())
		}
		return halves, true
	case OpInitSession, OpOpenRequest, OpSealReply, OpCloseSession, OpRekeySession:
		return u.sessionPrimitives()
	case OpGetPublicKey:
		key, known := keyPrimitive(u.Keys[0])
		return oneHalf(key), known
	default:
		return u.wrappingPrimitives()
	}
}

// sessionPrimitives returns the primitives of an operation on sessions. The key signs what begins a
// session.
func (u Use) sessionPrimitives() (halves [][]algorithm.Primitive, known bool) {
	session, known := algorithm.FindSession(u.Algorithm)
	if !known {
		return nil, u.Algorithm == "" // a session that had ended was closed
	}
	halves = session.Primitives()
	if u.Keys[0] == (UsedKey{}) {
		return halves, true
	}
	key, known := keyPrimitive(u.Keys[0])
	for i := range halves {
		halves[i] = append(halves[i], key)
	}
	return halves, known
}

func oneHalf(primitives ...algorithm.Primitive) [][]algorithm.Primitive {
	return [][]algorithm.Primitive{primitives}
}

// signaturePrimitives returns the primitives of a name such as "ecdsa-with-sha-256+ml-dsa-65",
// with a key for each part of it.
func signaturePrimitives(name string, keys []UsedKey) (halves [][]algorithm.Primitive, known bool) {
	parts := strings.Split(name, "+")
	if len(parts) > len(keys) {
		return nil, false
	}
	for i, part := range parts {
		sign, digest, known := splitSignature(part)
		key, found := keyPrimitive(keys[i])
		if !known || !found || keys[i].Algorithm != sign.Key().Name {
			return nil, false
		}
		half := []algorithm.Primitive{key}
		if sign.TakesDigest() {
			half = append(half, digest.Primitive())
		}
		halves = append(halves, half)
	}
	return halves, true
}

// splitSignature is the reverse of withDigest. The digest is 0 if the algorithm takes none.
func splitSignature(name string) (sign algorithm.Signature, digest algorithm.Digest, known bool) {
	first, second, _ := strings.Cut(name, "-with-")
	sign, known = algorithm.FindSignature(first)
	if !known || !sign.TakesDigest() {
		return sign, 0, known && second == ""
	}
	digest, known = algorithm.FindDigest(second)
	return sign, digest, known
}

// keyPrimitive returns the primitive of a key pair.
func keyPrimitive(key UsedKey) (algorithm.Primitive, bool) {
	row, known := algorithm.FindKey(key.Algorithm)
	if !known {
		return algorithm.Primitive{}, false
	}
	return row.Primitive(key.Bits)
}

// wrappingPrimitives returns the primitives of an operation on data keys.
func (u Use) wrappingPrimitives() (halves [][]algorithm.Primitive, known bool) {
	if u.Algorithm == "" && u.Keys == [2]UsedKey{} {
		return nil, true // a batch of which no key was unwrapped
	}
	wrapping, old := u.Keys[0], UsedKey{}
	if u.Operation == OpRewrapKey {
		wrapping, old = u.Keys[1], u.Keys[0]
	}
	halves, known = wrappingOf(u.Algorithm, wrapping.Bits)
	if !known {
		return nil, false
	}
	var more []algorithm.Primitive
	switch u.Operation {
	case OpRewrapKey:
		olds, known := wrappingOf(old.Algorithm, 0)
		if !known {
			return nil, false
		}
		// What was wrapped before is as weak as it was, so no half hides it.
		return oneHalf(slices.Concat(append(olds, halves...)...)...), true
	case OpGenerateDataKey:
		if !slices.Contains(algorithm.AESGCM.KeySizes(), u.Keys[1].Bits) {
			return nil, false
		}
		more = []algorithm.Primitive{algorithm.DataKeyPrimitive(u.Keys[1].Bits)}
	case OpEncryptStream, OpDecryptStream:
		more = algorithm.AES256GCMHKDF64KB.Primitives()
	}
	for i := range halves {
		halves[i] = append(halves[i], more...)
	}
	return halves, true
}

// wrappingOf returns the primitives of an algorithm that wraps with a key of a size in bits, 0 if
// the size is not known.
func wrappingOf(name string, bits int) ([][]algorithm.Primitive, bool) {
	with, known := algorithm.FindWrapping(name)
	if !known {
		return nil, false
	}
	switch sizes := with.KeySizes(); {
	case bits == 0:
	case with.Key() == algorithm.RSAWrappingKey && bits >= sizes[0] && bits <= algorithm.MaxRSASize:
	case with.Key() == algorithm.AESWrappingKey && slices.Contains(sizes, bits):
	case sizes[0] == algorithm.FixedSize:
	default:
		return nil, false
	}
	return with.Primitives(bits), true
}

// Objection returns why FIPS 140-3 does not approve the calls, as a sentence without a full stop. It
// is empty if it approves them. The use is one that Primitives knows.
func (u Use) Objection() string {
	switch u.Operation {
	case OpHashData:
		digest, _ := algorithm.FindDigest(u.Algorithm)
		return objection(u.Algorithm, digest.Approval())
	case OpEncryptData:
		if u.GivenNonce {
			return "the caller makes the nonce"
		}
		return cipherObjection(u.Algorithm)
	case OpDecryptData:
		return cipherObjection(u.Algorithm)
	case OpSignData, OpVerifyData, OpSignCertificate:
		return u.signatureObjection()
	case OpInitSession, OpOpenRequest, OpSealReply, OpCloseSession, OpRekeySession:
		session, known := algorithm.FindSession(u.Algorithm)
		if !known {
			return "" // a session that had ended was closed
		}
		return cmp.Or(objection(u.Algorithm, session.Approval()), keyObjection(u.Keys[0]))
	case OpGetPublicKey:
		return keyObjection(u.Keys[0])
	}
	with, is := algorithm.FindWrapping(u.Algorithm)
	if !is {
		return "" // a batch of which no key was unwrapped
	}
	if why := objection(u.Algorithm, with.Approval()); why != "" {
		return why
	}
	if old, is := algorithm.FindWrapping(u.Keys[0].Algorithm); is && u.Operation == OpRewrapKey {
		return objection(old.String(), old.Approval())
	}
	if stream := algorithm.AES256GCMHKDF64KB; u.Operation == OpEncryptStream {
		return objection(stream.String(), stream.Approval())
	}
	return ""
}

// signatureObjection is Objection of a use with signatures.
func (u Use) signatureObjection() string {
	for part := range strings.SplitSeq(u.Algorithm, "+") {
		sign, digest, _ := splitSignature(part)
		if why := objection(sign.String(), sign.Approval()); why != "" {
			return why
		}
		if sign.TakesDigest() && digest.Approval() != algorithm.Approved {
			return objection(digest.String(), digest.Approval())
		}
	}
	for _, key := range u.Keys {
		if why := keyObjection(key); why != "" {
			return why
		}
	}
	if u.SHA1Request {
		return objection("sha-1", algorithm.SHA1.Approval())
	}
	return ""
}

func cipherObjection(name string) string {
	cipher, _ := algorithm.FindCipher(name)
	return objection(name, cipher.Approval())
}

func keyObjection(key UsedKey) string {
	row, known := algorithm.FindKey(key.Algorithm)
	switch {
	case !known:
		return ""
	case row.IsListed() && key.Bits < row.MinApprovedSize:
		return fmt.Sprintf("%s keys below %d bits, which FIPS 186-5 does not approve", row.Name, row.MinApprovedSize)
	}
	return objection(row.Name, row.Approval)
}

// objection returns the sentence for an algorithm that is not approved.
func objection(name string, approval algorithm.Approval) string {
	if why := approval.Objection(); why != "" {
		return name + ", " + why
	}
	return ""
}
