// SPDX-License-Identifier: Apache-2.0

// Package wrapping unwraps the data keys of OpenTDF files with the private keys of the key
// access service, and wraps them to the public keys of clients.
//
// The formats are given by OpenTDF's clients. All cryptography is the standard library's:
//
//	wrapped        RSA-OAEP with SHA-1 and no label (RFC 8017, section 7.1)
//	ec-wrapped     ECDH with an ephemeral key of the client, HKDF-SHA256 (RFC 5869) with the salt
//	               SHA-256("TDF") and no info, AES-256-GCM with the nonce in front
//	mlkem-wrapped  ML-KEM (FIPS 203), whose shared key is the key of AES-256-GCM with the nonce in
//	               front; ciphertexts of both in a DER sequence
//	hybrid-wrapped X-Wing (draft-connolly-cfrg-xwing-kem), HKDF and AES-256-GCM as ec-wrapped, in a
//	               DER sequence as mlkem-wrapped
//
// An error of the package says nothing about a key. Callers still keep errors of Unwrap to
// themselves: which of its steps failed is a secret.
package wrapping
