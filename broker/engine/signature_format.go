// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"slices"

	"filippo.io/mldsa"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// signaturePEMLabel is the label of a signature in the format PEM.
const signaturePEMLabel = "SIGNATURE"

// The formats of a signature:
//
//	RAW  ECDSA: r and s joined, each as long as the order of the curve (IEEE P1363)
//	     other algorithms: the octets of the algorithm
//	DER  ECDSA: ECDSA-Sig-Value (RFC 3279, section 2.2.3)
//	     other algorithms: the octets of the algorithm
//	PEM  the format DER, between lines with the label SIGNATURE
//
// In each format, a hybrid signature is the DER of both signatures, the classical one first:
//
//	HybridSignature ::= SEQUENCE SIZE (2) OF OCTET STRING

// ecdsaSignature is ECDSA-Sig-Value.
type ecdsaSignature struct{ R, S *big.Int }

// checkFormat refuses a format that the profile does not allow or the algorithm does not have.
func checkFormat(policy *profile.SignaturePolicy, format profile.SignatureFormat) error {
	if want, fixed := policy.Format(); fixed && format != want {
		return inputError("signatureFormat", "is %s, expected %s, which the profile prescribes", format, want)
	}
	if format == profile.SignatureCMS && !profile.HasCMS(policy.Components()) {
		return inputError("signatureFormat", "is CMS, which %s does not have; expected RAW, DER or PEM", policy.Algorithm())
	}
	return nil
}

func encodeSignatures(components []profile.SignatureComponent, format profile.SignatureFormat, keys []SigningKey, signatures [][]byte) ([]byte, error) {
	if format == profile.SignatureRAW {
		for i, c := range components {
			if c.Algorithm != algorithm.ECDSA {
				continue
			}
			raw, err := joinECDSA(keys[i].Signer.Public().(*ecdsa.PublicKey), signatures[i])
			if err != nil {
				return nil, err
			}
			signatures[i] = raw
		}
	}
	encoded := signatures[0]
	if len(signatures) > 1 {
		var err error
		if encoded, err = asn1.Marshal(signatures); err != nil {
			return nil, err
		}
	}
	if format == profile.SignaturePEM {
		encoded = pem.EncodeToMemory(&pem.Block{Type: signaturePEMLabel, Bytes: encoded})
	}
	return encoded, nil
}

// decodeSignatures is the inverse of encodeSignatures. It does not verify the signatures.
func decodeSignatures(components []profile.SignatureComponent, format profile.SignatureFormat, keys []VerifyingKey, encoded []byte) ([][]byte, error) {
	if len(encoded) == 0 {
		return nil, inputError("signature", "is empty, expected a signature in format %s", format)
	}
	if format == profile.SignaturePEM {
		block, rest := pem.Decode(encoded)
		if block == nil || block.Type != signaturePEMLabel || len(block.Headers) > 0 ||
			len(bytes.TrimSpace(rest)) > 0 || !bytes.HasPrefix(bytes.TrimSpace(encoded), []byte("-----BEGIN ")) {
			return nil, inputError("signature", "is not PEM, expected one block with the label %s and nothing else", signaturePEMLabel)
		}
		encoded = block.Bytes
	}
	signatures := [][]byte{encoded}
	if len(components) > 1 {
		signatures = nil
		if rest, err := asn1.Unmarshal(encoded, &signatures); err != nil || len(rest) > 0 || len(signatures) != len(components) {
			return nil, inputError("signature", "is not the DER of a sequence of %d octet strings, which a hybrid signature is", len(components))
		}
	}
	for i, c := range components {
		signature, err := decodeSignature(c, format, keys[i].Public, signatures[i])
		if err != nil {
			return nil, err
		}
		signatures[i] = signature
	}
	return signatures, nil
}

func decodeSignature(c profile.SignatureComponent, format profile.SignatureFormat, public crypto.PublicKey, encoded []byte) ([]byte, error) {
	if c.Algorithm == algorithm.ECDSA {
		if format == profile.SignatureRAW {
			return splitECDSA(public.(*ecdsa.PublicKey), encoded)
		}
		var s ecdsaSignature
		if rest, err := asn1.Unmarshal(encoded, &s); err != nil || len(rest) > 0 || s.R.Sign() < 0 || s.S.Sign() < 0 {
			return nil, inputError("signature", "is not the DER of an ECDSA-Sig-Value, expected a sequence of the integers r and s")
		}
		return encoded, nil
	}
	if want := signatureSize(public); len(encoded) != want {
		return nil, inputError("signature", "has %d bytes, expected the %d bytes of a signature by this %s key", len(encoded), want, c.Algorithm)
	}
	return encoded, nil
}

// signatureSize returns the size in bytes of the signatures of a key. The key must not be an
// ECDSA key.
func signatureSize(public crypto.PublicKey) int {
	switch key := public.(type) {
	case *rsa.PublicKey:
		return key.Size()
	case *mldsa.PublicKey:
		return key.Parameters().SignatureSize()
	default:
		return ed25519.SignatureSize
	}
}

// joinECDSA converts an ECDSA-Sig-Value in DER to r and s of fixed lengths, one after the other.
func joinECDSA(public *ecdsa.PublicKey, der []byte) ([]byte, error) {
	var s ecdsaSignature
	if _, err := asn1.Unmarshal(der, &s); err != nil {
		return nil, err
	}
	size := ecdsaOrderSize(public)
	raw := make([]byte, 2*size)
	s.R.FillBytes(raw[:size])
	s.S.FillBytes(raw[size:])
	return raw, nil
}

// splitECDSA is the inverse of joinECDSA.
func splitECDSA(public *ecdsa.PublicKey, raw []byte) ([]byte, error) {
	size := ecdsaOrderSize(public)
	if len(raw) != 2*size {
		return nil, inputError("signature", "has %d bytes, expected the %d of r and s of a key on %s", len(raw), 2*size, public.Params().Name)
	}
	return asn1.Marshal(ecdsaSignature{new(big.Int).SetBytes(raw[:size]), new(big.Int).SetBytes(raw[size:])})
}

func ecdsaOrderSize(public *ecdsa.PublicKey) int { return (public.Params().N.BitLen() + 7) / 8 }

// oneDER reports whether data is exactly one element of DER whose elements are DER as well,
// nested at most depth deep. Other data does not reach libraries that read the more liberal
// BER.
func oneDER(data []byte, depth int) bool {
	var element asn1.RawValue
	rest, err := asn1.Unmarshal(data, &element)
	if err != nil || len(rest) > 0 || depth == 0 {
		return false
	}
	if !element.IsCompound {
		return true
	}
	for content := element.Bytes; len(content) > 0; {
		var inner asn1.RawValue
		if content, err = asn1.Unmarshal(content, &inner); err != nil || !oneDER(inner.FullBytes, depth-1) {
			return false
		}
	}
	return true
}

func certificatesOf[T any](certificates []T, keep func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(certificates), func(c T) bool { return !keep(c) })
}
