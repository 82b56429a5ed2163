// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

var message = []byte("what is signed")

// signatureCases are all algorithms, each with keys of its own.
var signatureCases = map[string]struct {
	lines []string
	keys  string
	name  string
	// openssl are the options for the same algorithm in OpenSSL, nil if it does not have the algorithm.
	openssl []string
}{
	"RSA with SHA-256":                  {[]string{"SignAlg: rsa", "HashAlg: sha-256"}, "rsa-2048", "rsa-with-sha-256", []string{"-digest", "sha256"}},
	"RSA with SHA-512":                  {[]string{"SignAlg: rsa", "HashAlg: sha-512"}, "rsa-3072", "rsa-with-sha-512", []string{"-digest", "sha512"}},
	"RSA with SHA3-384":                 {[]string{"SignAlg: rsa", "HashAlg: sha3-384"}, "rsa-2048", "rsa-with-sha3-384", []string{"-digest", "sha3-384"}},
	"RSA-PSS with SHA-256":              {[]string{"SignAlg: rsa-pss", "HashAlg: sha-256"}, "rsa-2048", "rsa-pss-with-sha-256", []string{"-digest", "sha256", "-pkeyopt", "rsa_padding_mode:pss", "-pkeyopt", "rsa_pss_saltlen:digest"}},
	"RSA-PSS with SHA3-512":             {[]string{"SignAlg: rsa-pss", "HashAlg: sha3-512"}, "rsa-2048", "rsa-pss-with-sha3-512", []string{"-digest", "sha3-512", "-pkeyopt", "rsa_padding_mode:pss", "-pkeyopt", "rsa_pss_saltlen:digest"}},
	"ECDSA on P-224 with SHA-256":       {[]string{"SignAlg: ecdsa", "HashAlg: sha-256"}, "p-224", "ecdsa-with-sha-256", []string{"-digest", "sha256"}},
	"ECDSA on P-256 with SHA-256":       {[]string{"SignAlg: ECDSA", "HashAlg: SHA-256"}, "p-256", "ecdsa-with-sha-256", []string{"-digest", "sha256"}},
	"ECDSA on P-384 with SHA-512":       {[]string{"SignAlg: ecdsa", "HashAlg: sha-512"}, "p-384", "ecdsa-with-sha-512", []string{"-digest", "sha512"}},
	"ECDSA on P-521 with SHA3-256":      {[]string{"SignAlg: ecdsa", "HashAlg: sha3-256"}, "p-521", "ecdsa-with-sha3-256", []string{"-digest", "sha3-256"}},
	"Ed25519":                           {[]string{"SignAlg: ed25519"}, "ed25519", "ed25519", []string{}},
	"ML-DSA-44":                         {[]string{"SigningMode: post-quantum", "SignAlg: ml-dsa-44"}, "ml-dsa-44", "ml-dsa-44", nil},
	"ML-DSA-65":                         {[]string{"SigningMode: post-quantum", "SignAlg: ml-dsa-65"}, "ml-dsa-65", "ml-dsa-65", nil},
	"ML-DSA-87":                         {[]string{"SigningMode: post-quantum", "SignAlg: ML-DSA-87"}, "ml-dsa-87", "ml-dsa-87", nil},
	"a hybrid of ECDSA and ML-DSA-65":   {[]string{"SigningMode: hybrid", "SignAlg: ecdsa+ml-dsa-65", "HashAlg: sha-384"}, "p-384+ml-dsa-65", "ecdsa-with-sha-384+ml-dsa-65", nil},
	"a hybrid of Ed25519 and ML-DSA-44": {[]string{"SigningMode: hybrid", "SignAlg: ed25519+ml-dsa-44"}, "ed25519+ml-dsa-44", "ed25519+ml-dsa-44", nil},
	"a hybrid of RSA-PSS and ML-DSA-87": {[]string{"SigningMode: hybrid", "SignAlg: rsa-pss+ml-dsa-87", "HashAlg: sha-256"}, "rsa-2048+ml-dsa-87", "rsa-pss-with-sha-256+ml-dsa-87", nil},
}

func TestASignatureIsValidForItsInputOnly(t *testing.T) {
	for name, c := range signatureCases {
		for _, format := range []profile.SignatureFormat{profile.SignatureRAW, profile.SignatureDER, profile.SignaturePEM} {
			t.Run(name+" in "+format.String(), func(t *testing.T) {
				policy := signaturePolicy(t, c.lines...)
				if policy.Algorithm() != c.name {
					t.Errorf("the algorithm is named %s, want %s", policy.Algorithm(), c.name)
				}
				for _, input := range [][]byte{message, {}, bytes.Repeat([]byte("long"), 1<<18)} {
					signature, err := engine.Sign(policy, format, signers(t, c.keys), input)
					if err != nil {
						t.Fatal(err)
					}
					valid := func(keys string, input, signature []byte) bool {
						t.Helper()
						valid, err := engine.Verify(policy, format, verifiers(t, keys), input, signature)
						if err != nil {
							t.Fatal(err)
						}
						return valid
					}
					if !valid(c.keys, input, signature) {
						t.Errorf("the signature of %d bytes is not valid", len(input))
					}
					if valid(c.keys, append(bytes.Clone(input), 0), signature) {
						t.Error("the signature is valid for another input")
					}
					classical, postQuantum, hybrid := strings.Cut(c.keys, "+")
					if valid(strings.ReplaceAll(c.keys, classical, classical+"/other"), input, signature) {
						t.Error("the signature is valid with another key")
					}
					if hybrid && valid(classical+"+"+postQuantum+"/other", input, signature) {
						t.Error("the hybrid is valid although its second signature is of another key")
					}
				}
			})
		}
	}
}

func TestOpenSSLAcceptsWhatWeSign(t *testing.T) {
	for name, c := range signatureCases {
		if c.openssl == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			signature, err := engine.Sign(signaturePolicy(t, c.lines...), profile.SignatureDER, signers(t, c.keys), message)
			if err != nil {
				t.Fatal(err)
			}
			args := append([]string{"pkeyutl", "-verify", "-rawin", "-in", saved(t, message), "-sigfile", saved(t, signature),
				"-pubin", "-inkey", savedPublic(t, signatureKey(t, c.keys))}, c.openssl...)
			if out := runOpenSSL(t, nil, args...); !strings.Contains(out, "Signature Verified Successfully") {
				t.Error(out)
			}
		})
	}
}

func TestWeAcceptWhatOpenSSLSigns(t *testing.T) {
	for name, c := range signatureCases {
		if c.openssl == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			out := saved(t, nil)
			args := append([]string{"pkeyutl", "-sign", "-rawin", "-in", saved(t, message), "-out", out,
				"-inkey", savedKey(t, signatureKey(t, c.keys))}, c.openssl...)
			runOpenSSL(t, nil, args...)
			signature, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			valid, err := engine.Verify(signaturePolicy(t, c.lines...), profile.SignatureDER, verifiers(t, c.keys), message, signature)
			if err != nil || !valid {
				t.Errorf("%v, %v", valid, err)
			}
		})
	}
}

func TestPublishedSignaturesAreValid(t *testing.T) {
	point := func(text string) *ecdsa.PublicKey {
		key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), unhex(t, text))
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	for name, c := range map[string]struct {
		lines     []string
		public    any
		message   string
		signature string
	}{
		// RFC 6979, appendix A.2.5: P-256 with SHA-256, message "sample".
		"ECDSA of RFC 6979": {
			[]string{"SignAlg: ecdsa", "HashAlg: sha-256"},
			point("0460FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB6" +
				"7903FE1008B8BC99A41AE9E95628BC64F2F1B20C2D7E9F5177A3C294D4462299"),
			"sample",
			"EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716" +
				"F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8",
		},
		// RFC 8032, section 7.1, test 3.
		"Ed25519 of RFC 8032": {
			[]string{"SignAlg: ed25519"},
			ed25519.PublicKey(unhex(t, "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025")),
			"\xaf\x82",
			"6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			valid, err := engine.Verify(signaturePolicy(t, c.lines...), profile.SignatureRAW,
				[]engine.VerifyingKey{{Public: c.public}}, []byte(c.message), unhex(t, c.signature))
			if err != nil || !valid {
				t.Errorf("%v, %v", valid, err)
			}
		})
	}
}

func TestTheFormOfASignatureIsTheDocumentedOne(t *testing.T) {
	ec, hybrid := signaturePolicy(t, "SignAlg: ecdsa", "HashAlg: sha-256"), signaturePolicy(t, "SigningMode: hybrid", "SignAlg: ecdsa+ml-dsa-44", "HashAlg: sha-256")
	sign := func(policy *profile.SignaturePolicy, format profile.SignatureFormat, keys string) []byte {
		t.Helper()
		signature, err := engine.Sign(policy, format, signers(t, keys), message)
		if err != nil {
			t.Fatal(err)
		}
		return signature
	}
	for curve, size := range map[string]int{"p-224": 56, "p-256": 64, "p-384": 96, "p-521": 132} {
		for range 20 { // r or s is short in one of 128 signatures
			if raw := sign(ec, profile.SignatureRAW, curve); len(raw) != size {
				t.Errorf("RAW of %s has %d bytes, want %d", curve, len(raw), size)
			}
		}
	}
	var pair struct{ R, S *big.Int }
	if rest, err := asn1.Unmarshal(sign(ec, profile.SignatureDER, "p-256"), &pair); err != nil || len(rest) > 0 {
		t.Errorf("DER is no sequence of two integers: %v", err)
	}
	block, rest := pem.Decode(sign(ec, profile.SignaturePEM, "p-256"))
	if block == nil || block.Type != "SIGNATURE" || len(rest) > 0 {
		t.Error("PEM is not one block SIGNATURE")
	} else if rest, err := asn1.Unmarshal(block.Bytes, &pair); err != nil || len(rest) > 0 {
		t.Errorf("PEM does not hold DER: %v", err)
	}
	var parts [][]byte
	if rest, err := asn1.Unmarshal(sign(hybrid, profile.SignatureRAW, "p-256+ml-dsa-44"), &parts); err != nil || len(rest) > 0 || len(parts) != 2 ||
		len(parts[0]) != 64 || len(parts[1]) != 2420 {
		t.Errorf("a hybrid in RAW is no sequence of 64 and 2420 octets: %v", err)
	}
	parts = nil
	if rest, err := asn1.Unmarshal(sign(hybrid, profile.SignatureDER, "p-256+ml-dsa-44"), &parts); err != nil || len(rest) > 0 || len(parts) != 2 {
		t.Errorf("a hybrid in DER is no sequence of two octet strings: %v", err)
	} else if rest, err := asn1.Unmarshal(parts[0], &pair); err != nil || len(rest) > 0 {
		t.Errorf("the first of a hybrid in DER is no ECDSA-Sig-Value: %v", err)
	}
	// Each signature of a hybrid is valid by itself.
	valid, err := engine.Verify(ec, profile.SignatureDER, verifiers(t, "p-256"), message, parts[0])
	if err != nil || !valid {
		t.Errorf("the classical signature of a hybrid: %v, %v", valid, err)
	}
}
