// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto"
	_ "crypto/sha256" // registers what the table below names
	"crypto/sha3"
	_ "crypto/sha512"
	"encoding/hex"
	"fmt"
)

// hashes are the fixed-length algorithms of the released profile format.
var hashes = map[string]crypto.Hash{
	"sha-256":     crypto.SHA256,
	"sha-384":     crypto.SHA384,
	"sha-512":     crypto.SHA512,
	"sha-512/256": crypto.SHA512_256,
	"sha3-256":    crypto.SHA3_256,
	"sha3-384":    crypto.SHA3_384,
	"sha3-512":    crypto.SHA3_512,
}

// checkDigest computes the digest that an answer claims to hold and compares.
func checkDigest(algorithm string, input []byte, hashHex string) error {
	var want []byte
	switch hash, known := hashes[algorithm]; {
	case known:
		state := hash.New()
		state.Write(input)
		want = state.Sum(nil)
	case algorithm == "shake-128":
		want = sha3.SumSHAKE128(input, 16)
	case algorithm == "shake-256":
		want = sha3.SumSHAKE256(input, 32)
	default:
		return fmt.Errorf("found the algorithm %q, expected one of the released profile format", algorithm)
	}
	if hashHex != hex.EncodeToString(want) {
		return fmt.Errorf("found the digest %q, expected %x by %s", hashHex, want, algorithm)
	}
	return nil
}
