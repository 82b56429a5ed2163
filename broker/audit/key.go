// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
)

// CheckKey returns an error that continues the sentence "the key …" if checkpoints cannot be
// signed with the key.
func CheckKey(public crypto.PublicKey) error {
	switch key := public.(type) {
	case ed25519.PublicKey:
		return nil
	case *ecdsa.PublicKey:
		if bits := key.Curve.Params().BitSize; bits < 256 {
			return fmt.Errorf("is on a curve of %d bits, expected at least 256", bits)
		}
		return nil
	}
	return errors.New("is neither Ed25519 nor ECDSA")
}

// hashFor returns the hash of signatures: none for Ed25519 (RFC 8032, section 5.1), else SHA-256.
func hashFor(public crypto.PublicKey) crypto.Hash {
	if _, ok := public.(ed25519.PublicKey); ok {
		return 0
	}
	return crypto.SHA256
}

// verify reports whether a signature belongs to a statement.
func verify(public crypto.PublicKey, statement, signature []byte) bool {
	switch key := public.(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(key, statement, signature)
	case *ecdsa.PublicKey:
		digest := sha256.Sum256(statement)
		return ecdsa.VerifyASN1(key, digest[:], signature)
	}
	return false
}
