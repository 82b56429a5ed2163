// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
)

// namesOf returns the names of algorithms with a text between them.
func namesOf[A fmt.Stringer](all []A, between string) string {
	names := make([]string, len(all))
	for i, one := range all {
		names[i] = one.String()
	}
	return strings.Join(names, between)
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

// splitSignature is the inverse of withDigest. The digest is 0 if the algorithm takes none.
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

// signatureObjection returns the Objection to a use with signatures.
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

// objection returns the sentence about an algorithm that is not approved. It is empty for an
// approved algorithm.
func objection(name string, approval algorithm.Approval) string {
	if why := approval.Objection(); why != "" {
		return name + ", " + why
	}
	return ""
}
