// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"strings"
	"testing"

	mldsax509 "filippo.io/mldsa/x509"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

func TestAKeyToVerifyWithIsReadFrom(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want crypto.PublicKey
	}{
		"a public key in PEM":                     {publicPEM(ecKey), ecKey.Public()},
		"a public key of ML-DSA in PEM":           {publicPEM(mlKey), mlKey.Public()},
		"a public key in DER":                     {string(must(x509.MarshalPKIXPublicKey(ecKey.Public()))), ecKey.Public()},
		"the first of many certificates":          {certificate(ecKey, ecKey, nil) + strings.Repeat(certificate(otherKey, otherKey, nil), 20), ecKey.Public()},
		"a file of Windows with two certificates": {"\ufeff" + certificate(ecKey, ecKey, nil) + certificate(otherKey, otherKey, nil), ecKey.Public()},
		"a file of Windows with a private key":    {"\ufeff" + privatePEM(edKey), edKey.Public()},
		"a certificate":                           {certificate(rsaKey, rsaKey, nil), rsaKey.Public()},
		"a private key in PEM":                    {privatePEM(edKey), edKey.Public()},
		"a private key in PKCS #8 as DER":         {string(must(mldsax509.MarshalPKCS8PrivateKey(mlKey))), mlKey.Public()},
		"a private key in PKCS #1 as DER":         {string(x509.MarshalPKCS1PrivateKey(rsaKey)), rsaKey.Public()},
		"a private key in SEC 1 as DER":           {string(must(x509.MarshalECPrivateKey(ecKey))), ecKey.Public()},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := keys.ParseVerifier([]byte(c.text), algorithm.MaxRSASize)
			if err != nil {
				t.Fatal(err)
			}
			if equal, ok := got.(interface{ Equal(crypto.PublicKey) bool }); !ok || !equal.Equal(c.want) {
				t.Error("read another key")
			}
		})
	}
}

func TestAFileOfWindowsHasAllItsCertificates(t *testing.T) {
	one := certificate(ecKey, ecKey, nil)
	if chain, err := keys.ParseCertificates([]byte("\ufeff"+strings.ReplaceAll(one+one, "\n", "\r\n")), algorithm.MaxRSASize); err != nil || len(chain) != 2 {
		t.Errorf("found %d certificates, %v, expected 2", len(chain), err)
	}
}

// publicInfo is a SubjectPublicKeyInfo of four bytes of key. The content of the
// algorithm's identifier and the parameters are in hexadecimal.
func publicInfo(oid, parameters string) string {
	var algorithm struct {
		OID        asn1.RawValue
		Parameters asn1.RawValue `asn1:"optional"`
	}
	algorithm.OID = asn1.RawValue{Tag: asn1.TagOID, Bytes: must(hex.DecodeString(oid))}
	algorithm.Parameters.FullBytes = must(hex.DecodeString(parameters))
	return string(must(asn1.Marshal(struct {
		Algorithm any
		Key       asn1.BitString
	}{algorithm, asn1.BitString{Bytes: []byte{4, 1, 2, 3}, BitLength: 32}})))
}

func TestAKeyToVerifyWithIsRefusedBecauseIt(t *testing.T) {
	expanded := must(asn1.Marshal(struct {
		Version   int
		Algorithm pkix.AlgorithmIdentifier
		Key       []byte
	}{0, pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 3, 18}}, append([]byte{4, 130, 15, 192}, make([]byte, 4032)...)}))
	for name, c := range map[string]struct{ text, want string }{
		"is empty":                     {"", "has no key, expected PEM with a public key, a certificate or a private key"},
		"is no PEM":                    {"hunter2", "has no key, expected PEM with a public key, a certificate or a private key"},
		"is the DER of something else": {"0\x03\x02\x01\x07", "has no key that can be read, expected the DER of a public or private key"},
		"is a public key with rubbish": {block("PUBLIC KEY", []byte("hunter2")), "has a public key that cannot be read, expected the SubjectPublicKeyInfo of an RSA, ECDSA, Ed25519 or ML-DSA key"},
		"is on another curve":          {publicInfo("2a8648ce3d0201", "06052b8104000a"), "is an ECDSA key on another curve, expected P-224, P-256, P-384 or P-521 by name"},
		"has a curve's parameters":     {publicInfo("2a8648ce3d0201", "3000"), "is an ECDSA key on another curve, expected P-224, P-256, P-384 or P-521 by name"},
		"is no point of its curve":     {publicInfo("2a8648ce3d0201", "06082a8648ce3d030107"), "is damaged: its parts do not fit together"},
		"is for RSASSA-PSS only":       {publicInfo("2a864886f70d01010a", "3000"), "is an RSA key restricted to RSASSA-PSS, expected the ordinary kind (rsaEncryption); a profile chooses PSS by SignAlg rsa-pss"},
		"is a short key of ML-DSA":     {publicInfo("608648016503040312", ""), "is damaged: its parts do not fit together"},
		"is of another algorithm":      {publicInfo("2b6571", ""), "has a public key of the algorithm 1.3.101.113, expected RSA, ECDSA, Ed25519 or ML-DSA"},
		"is of an algorithm with a name that is long": {publicInfo(strings.Repeat("7f", 20000), ""),
			"has a public key of the algorithm 2.47" + strings.Repeat(".127", 15) + "…, expected RSA, ECDSA, Ed25519 or ML-DSA"},
		"is of another algorithm in PEM": {block("PUBLIC KEY", []byte(publicInfo("2b6571", ""))), "has a public key of the algorithm 1.3.101.113, expected RSA, ECDSA, Ed25519 or ML-DSA"},
		"is two public keys":             {publicPEM(ecKey) + publicPEM(ecKey), "has more than one PEM block, expected one public key"},
		"is a certificate with rubbish":  {block("CERTIFICATE", []byte("hunter2")), "has a certificate, number 1, that cannot be read: x509: malformed certificate"},
		"has an expanded ML-DSA key":     {block("PRIVATE KEY", expanded), "is an ML-DSA key that is not in the seed form of RFC 9881, expected only the seed"},
		"is a PEM block of another kind": {block("SIGNATURE", []byte("hunter2")), `has a PEM block "SIGNATURE", expected "PRIVATE KEY", "EC PRIVATE KEY" or "RSA PRIVATE KEY"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := keys.ParseVerifier([]byte(c.text), algorithm.MaxRSASize)
			if err == nil || err.Error() != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func FuzzParseVerifier(f *testing.F) {
	for _, text := range []string{
		publicPEM(ecKey), privatePEM(edKey), privatePEM(mlKey), certificate(ecKey, ecKey, nil), "-----BEGIN PUBLIC KEY-----\n", "0\x80", "",
		string(must(x509.MarshalPKIXPublicKey(ecKey.Public()))),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		public, chain, err := keys.ParseVerifier(data, algorithm.MaxRSASize)
		switch {
		case err != nil && (public != nil || chain != nil):
			t.Error("a key together with an error")
		case err == nil:
			if _, err := keys.NewVerifying("id", public, chain); err != nil {
				t.Errorf("a key was read that cannot be used: %v", err)
			}
		}
	})
}

func TestAKeyOfARequestIsOverwrittenOnceItWasUsed(t *testing.T) {
	signer, err := keys.ParseSigner([]byte(privatePEM(edKey)), algorithm.MaxRSASize)
	if err != nil {
		t.Fatal(err)
	}
	key, ok := signer.(ed25519.PrivateKey)
	if !ok {
		t.Fatalf("a key of type %T", signer)
	}
	keys.Forget(signer)
	if !bytes.Equal(key, make([]byte, len(key))) {
		t.Error("the key is still there")
	}
}

func TestAKeyThatIsReadIsLeftToItsOwner(t *testing.T) {
	for form, text := range map[string]string{"PEM": privatePEM(ecKey), "DER": string(must(x509.MarshalPKCS8PrivateKey(ecKey)))} {
		data := []byte(text)
		if _, err := keys.ParseSigner(data, algorithm.MaxRSASize); err != nil {
			t.Fatal(err)
		}
		if string(data) != text {
			t.Errorf("the %s of the caller was changed", form)
		}
	}
}
