// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"crypto"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

func TestAKeyThatDoesNotFitIsRefused(t *testing.T) {
	limits := []string{"KeyConstraints:", "  Issuer: {RSA: {MinKeySize: 3072, MaxKeySize: 4096}, ECDSA: {MinKeySize: 384, MaxKeySize: 384}}"}
	for name, c := range map[string]struct {
		lines []string
		keys  string
		want  string
	}{
		"of another algorithm":            {[]string{"SignAlg: rsa", "HashAlg: sha-256"}, "p-256", "keySource.single is an ECDSA key, expected an RSA key for rsa"},
		"of another ML-DSA":               {[]string{"SigningMode: post-quantum", "SignAlg: ml-dsa-44"}, "ml-dsa-65", "keySource.single is an ML-DSA-65 key, expected an ML-DSA-44 key for ml-dsa-44"},
		"too small for anything":          {[]string{"SignAlg: rsa", "HashAlg: sha-256"}, "rsa-1024", "keySource.single is an RSA key of 1024 bits, expected 2048 to 4096 bits"},
		"too small for the profile":       {append([]string{"SignAlg: rsa-pss", "HashAlg: sha-256"}, limits...), "rsa-2048", "keySource.single is an RSA key of 2048 bits, expected 3072 to 4096 bits"},
		"too large for the profile":       {append([]string{"SignAlg: ecdsa", "HashAlg: sha-256"}, limits...), "p-521", "keySource.single is an ECDSA key of 521 bits, expected 384 to 384 bits"},
		"one of two":                      {[]string{"SigningMode: hybrid", "SignAlg: ed25519+ml-dsa-44"}, "ed25519", "keySource has 1 key, expected 2 in componentKeys for ed25519+ml-dsa-44, the classical one first"},
		"two instead of one":              {[]string{"SignAlg: ed25519"}, "ed25519+ml-dsa-44", "keySource has 2 component keys, expected a single key for ed25519"},
		"two in the wrong order":          {[]string{"SigningMode: hybrid", "SignAlg: ed25519+ml-dsa-44"}, "ml-dsa-44+ed25519", "keySource.componentKeys.keys[0] is an ML-DSA-44 key, expected an Ed25519 key for ed25519"},
		"wrong in the second place":       {[]string{"SigningMode: hybrid", "SignAlg: ed25519+ml-dsa-44"}, "ed25519+ed25519", "keySource.componentKeys.keys[1] is an Ed25519 key, expected an ML-DSA-44 key for ml-dsa-44"},
		"too small for the salt of a PSS": {[]string{"SignAlg: rsa-pss", "HashAlg: sha-512", "KeyConstraints:", "  Issuer: {RSA: {MinKeySize: 1024, MaxKeySize: 4096}}"}, "rsa-1024", "keySource is an RSA key too small for rsa-pss with SHA-512"},
	} {
		t.Run(name, func(t *testing.T) {
			policy := signaturePolicy(t, c.lines...)
			_, err := engine.Sign(policy, profile.SignatureDER, signers(t, c.keys), message)
			var input *engine.InputError
			if !errors.As(err, &input) || err.Error() != c.want {
				t.Errorf("to sign: %v, want %s", err, c.want)
			}
			if name == "too small for the salt of a PSS" {
				return // with the right length such a signature is well-formed, but never valid
			}
			if _, err := engine.Verify(policy, profile.SignatureDER, verifiers(t, c.keys), message, []byte("signature")); !errors.As(err, &input) || err.Error() != c.want {
				t.Errorf("to verify: %v, want %s", err, c.want)
			}
		})
	}
}

func TestTheKeysThatSignAndThoseThatVerifyHaveLimitsOfTheirOwn(t *testing.T) {
	policy := signaturePolicy(t, "SignAlg: rsa", "HashAlg: sha-256", "KeyConstraints:",
		"  Issuer: {RSA: {MinKeySize: 3072, MaxKeySize: 4096}}", "  Subject: {RSA: {MinKeySize: 2048, MaxKeySize: 4096}}")
	if _, err := engine.Sign(policy, profile.SignatureDER, signers(t, "rsa-2048"), message); err == nil {
		t.Error("a key below the limit of Issuer signed")
	}
	if _, err := engine.Verify(policy, profile.SignatureDER, verifiers(t, "rsa-2048"), message, make([]byte, 256)); err != nil {
		t.Errorf("a key within the limit of Subject does not verify: %v", err)
	}
}

func TestTheFormatMustBeOneOfTheProfile(t *testing.T) {
	for name, c := range map[string]struct {
		lines  []string
		keys   string
		format profile.SignatureFormat
		want   string
	}{
		"another than the profile has": {[]string{"SignAlg: ed25519", "SignatureFormat: DER"}, "ed25519", profile.SignatureRAW, "signatureFormat is RAW, expected DER, which the profile prescribes"},
		"CMS of RSA-PSS":               {[]string{"SignAlg: rsa-pss", "HashAlg: sha-256"}, "rsa-2048", profile.SignatureCMS, "signatureFormat is CMS, which rsa-pss-with-sha-256 does not have; expected RAW, DER or PEM"},
		"CMS of SHA-3":                 {[]string{"SignAlg: ecdsa", "HashAlg: sha3-256"}, "p-256", profile.SignatureCMS, "signatureFormat is CMS, which ecdsa-with-sha3-256 does not have; expected RAW, DER or PEM"},
		"CMS of a hybrid":              {[]string{"SigningMode: hybrid", "SignAlg: rsa+ml-dsa-44", "HashAlg: sha-256"}, "rsa-2048+ml-dsa-44", profile.SignatureCMS, "signatureFormat is CMS, which rsa-with-sha-256+ml-dsa-44 does not have; expected RAW, DER or PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			policy := signaturePolicy(t, c.lines...)
			if _, err := engine.Sign(policy, c.format, signers(t, c.keys), message); err == nil || err.Error() != c.want {
				t.Errorf("to sign: %v, want %s", err, c.want)
			}
			if _, err := engine.Verify(policy, c.format, verifiers(t, c.keys), message, message); err == nil || err.Error() != c.want {
				t.Errorf("to verify: %v, want %s", err, c.want)
			}
		})
	}
}

func TestWhatIsNoSignatureIsRefusedRatherThanNotValid(t *testing.T) {
	sequence := func(values ...any) []byte {
		var content []byte
		for _, value := range values {
			der, err := asn1.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			content = append(content, der...)
		}
		der, err := asn1.Marshal(asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: content})
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	block := func(label string, data []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: label, Bytes: data})
	}
	ec, rsa, ed := []string{"SignAlg: ecdsa", "HashAlg: sha-256"}, []string{"SignAlg: rsa", "HashAlg: sha-256"}, []string{"SignAlg: ed25519"}
	hybrid := []string{"SigningMode: hybrid", "SignAlg: ed25519+ml-dsa-44"}
	const noDER = "signature is not the DER of an ECDSA-Sig-Value, expected a sequence of the integers r and s"
	const noPEM = "signature is not PEM, expected one block with the label SIGNATURE and nothing else"
	const noPair = "signature is not the DER of a sequence of 2 octet strings, which a hybrid signature is"
	for name, c := range map[string]struct {
		lines     []string
		keys      string
		format    profile.SignatureFormat
		signature []byte
		want      string
	}{
		"nothing":                       {ec, "p-256", profile.SignatureDER, nil, "signature is empty, expected a signature in format DER"},
		"ECDSA in RAW that is short":    {ec, "p-256", profile.SignatureRAW, make([]byte, 63), "signature has 63 bytes, expected the 64 of r and s of a key on P-256"},
		"ECDSA in DER instead of RAW":   {ec, "p-521", profile.SignatureRAW, sequence(1, 2), "signature has 8 bytes, expected the 132 of r and s of a key on P-521"},
		"ECDSA in RAW instead of DER":   {ec, "p-256", profile.SignatureDER, make([]byte, 64), noDER},
		"ECDSA with something behind":   {ec, "p-256", profile.SignatureDER, append(sequence(1, 2), 0), noDER},
		"ECDSA of one integer":          {ec, "p-256", profile.SignatureDER, sequence(1), noDER},
		"ECDSA of negative integers":    {ec, "p-256", profile.SignatureDER, sequence(-1, 2), noDER},
		"ECDSA of octets":               {ec, "p-256", profile.SignatureDER, sequence([]byte{1}, []byte{2}), noDER},
		"RSA that is short":             {rsa, "rsa-2048", profile.SignatureRAW, make([]byte, 255), "signature has 255 bytes, expected the 256 bytes of a signature by this rsa key"},
		"RSA that is long":              {rsa, "rsa-2048", profile.SignatureDER, make([]byte, 384), "signature has 384 bytes, expected the 256 bytes of a signature by this rsa key"},
		"Ed25519 that is short":         {ed, "ed25519", profile.SignatureRAW, make([]byte, 32), "signature has 32 bytes, expected the 64 bytes of a signature by this ed25519 key"},
		"no PEM":                        {ed, "ed25519", profile.SignaturePEM, make([]byte, 64), noPEM},
		"PEM of something else":         {ed, "ed25519", profile.SignaturePEM, block("PUBLIC KEY", make([]byte, 64)), noPEM},
		"PEM with another block behind": {ed, "ed25519", profile.SignaturePEM, append(block("SIGNATURE", make([]byte, 64)), block("SIGNATURE", make([]byte, 64))...), noPEM},
		"PEM with text before":          {ed, "ed25519", profile.SignaturePEM, append([]byte("text\n"), block("SIGNATURE", make([]byte, 64))...), noPEM},
		"PEM of the wrong length":       {ed, "ed25519", profile.SignaturePEM, block("SIGNATURE", make([]byte, 63)), "signature has 63 bytes, expected the 64 bytes of a signature by this ed25519 key"},
		"half of a hybrid":              {hybrid, "ed25519+ml-dsa-44", profile.SignatureDER, make([]byte, 64), noPair},
		"one of a hybrid":               {hybrid, "ed25519+ml-dsa-44", profile.SignatureDER, sequence(make([]byte, 64)), noPair},
		"three of a hybrid":             {hybrid, "ed25519+ml-dsa-44", profile.SignatureDER, sequence(make([]byte, 64), make([]byte, 2420), []byte{}), noPair},
		"a hybrid the wrong way round":  {hybrid, "ed25519+ml-dsa-44", profile.SignatureDER, sequence(make([]byte, 2420), make([]byte, 64)), "signature has 2420 bytes, expected the 64 bytes of a signature by this ed25519 key"},
		"a hybrid with a short second":  {hybrid, "ed25519+ml-dsa-44", profile.SignatureRAW, sequence(make([]byte, 64), make([]byte, 2419)), "signature has 2419 bytes, expected the 2420 bytes of a signature by this ml-dsa-44 key"},
	} {
		t.Run(name, func(t *testing.T) {
			valid, err := engine.Verify(signaturePolicy(t, c.lines...), c.format, verifiers(t, c.keys), message, c.signature)
			var input *engine.InputError
			if valid || !errors.As(err, &input) || err.Error() != c.want {
				t.Errorf("%v, %v, want %s", valid, err, c.want)
			}
		})
	}
}

func TestASignatureOfZerosIsWellFormedAndNotValid(t *testing.T) {
	for name, c := range signatureCases {
		if strings.Contains(c.keys, "+") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			policy := signaturePolicy(t, c.lines...)
			good, err := engine.Sign(policy, profile.SignatureRAW, signers(t, c.keys), message)
			if err != nil {
				t.Fatal(err)
			}
			valid, err := engine.Verify(policy, profile.SignatureRAW, verifiers(t, c.keys), message, make([]byte, len(good)))
			if valid || err != nil {
				t.Errorf("%v, %v", valid, err)
			}
		})
	}
}

// brokenSigner is a signer whose device fails.
type brokenSigner struct{ crypto.Signer }

func (brokenSigner) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("the device is gone")
}

func TestAKeyThatFailsIsNoFaultOfTheRequest(t *testing.T) {
	_, err := engine.Sign(signaturePolicy(t, "SignAlg: ed25519"), profile.SignatureRAW,
		[]engine.SigningKey{{Signer: brokenSigner{signatureKey(t, "ed25519")}}}, message)
	var input *engine.InputError
	if err == nil || errors.As(err, &input) {
		t.Errorf("%v, want an error that blames no input", err)
	}
}

func FuzzVerify(f *testing.F) {
	ec := signaturePolicy(f, "SignAlg: ecdsa", "HashAlg: sha-256")
	hybrid := signaturePolicy(f, "SigningMode: hybrid", "SignAlg: ecdsa+ml-dsa-44", "HashAlg: sha-256")
	certificate := signerCertificate(f, "p-256", nil)
	for format := range 4 {
		signature, err := engine.Sign(ec, profile.SignatureFormat(format), signers(f, "p-256", certificate), message)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(format), signature)
		if format == int(profile.SignatureCMS) {
			continue
		}
		if signature, err = engine.Sign(hybrid, profile.SignatureFormat(format), signers(f, "p-256+ml-dsa-44"), message); err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(format), signature)
	}
	f.Fuzz(func(t *testing.T, format uint8, signature []byte) {
		form := profile.SignatureFormat(format % 4)
		// The seeds are signatures of another message, so no signature may be valid.
		for _, c := range []struct {
			policy *profile.SignaturePolicy
			keys   []engine.VerifyingKey
		}{{ec, verifiers(t, "p-256")}, {hybrid, verifiers(t, "p-256+ml-dsa-44")}} {
			valid, err := engine.Verify(c.policy, form, c.keys, []byte("another message"), signature)
			var input *engine.InputError
			if valid || err != nil && !errors.As(err, &input) {
				t.Errorf("%v, %v", valid, err)
			}
		}
	})
}
