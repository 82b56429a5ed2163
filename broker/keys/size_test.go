// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// oddOf returns an odd number of a number of bits, which looks like a modulus.
func oddOf(bits uint) *big.Int {
	n := new(big.Int).Lsh(big.NewInt(1), bits)
	return n.Sub(n, big.NewInt(1))
}

// privateRSA returns a key in DER (PKCS #1) whose numbers fit the modulus only in size. Only a full parser detects that they are wrong.
func privateRSA(modulus, other uint) []byte {
	n := oddOf(other)
	return must(asn1.Marshal(struct {
		Version                     int
		N                           *big.Int
		E                           int
		D, P, Q, Dp, Dq, QInv, More *big.Int
	}{0, oddOf(modulus), 65537, n, n, n, n, n, n, n}))
}

func inPKCS8(der []byte) []byte {
	return must(asn1.Marshal(struct {
		Version   int
		Algorithm struct {
			OID  asn1.ObjectIdentifier
			Null asn1.RawValue
		}
		Key []byte
	}{Algorithm: struct {
		OID  asn1.ObjectIdentifier
		Null asn1.RawValue
	}{asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}, asn1.NullRawValue}, Key: der}))
}

// soon is far above the time that a refusal takes, and far below the time of any work
// with these keys.
const soon = 2 * time.Second

func TestAnRSAKeyThatIsTooLargeIsRefusedAtOnceAs(t *testing.T) {
	const largest = 4096
	huge := &rsa.PublicKey{N: oddOf(400_000), E: 65537}
	public := must(x509.MarshalPKIXPublicKey(huge))
	if text := block("PUBLIC KEY", public); len(text) > 70<<10 {
		t.Fatalf("the key has %d bytes", len(text))
	}
	signer := func(data []byte) error { _, err := keys.ParseSigner(data, largest); return err }
	verifier := func(data []byte) error { _, _, err := keys.ParseVerifier(data, largest); return err }
	for sentence, c := range map[string]struct {
		parse func([]byte) error
		data  []byte
		want  string
	}{
		"PKCS #1":                       {signer, privateRSA(8192, 4096), "is an RSA key of 8192 bits, expected at most 4096"},
		"PKCS #1 in PEM":                {signer, []byte(block("RSA PRIVATE KEY", privateRSA(8192, 4096))), "is an RSA key of 8192 bits, expected at most 4096"},
		"PKCS #8":                       {signer, inPKCS8(privateRSA(8192, 4096)), "is an RSA key of 8192 bits, expected at most 4096"},
		"PKCS #8 in PEM":                {signer, []byte(block("PRIVATE KEY", inPKCS8(privateRSA(4097, 4096)))), "is an RSA key of 4097 bits, expected at most 4096"},
		"numbers larger than a modulus": {signer, privateRSA(2048, 15_000), "is damaged: its parts do not fit together"},
		"a private key to verify with":  {verifier, []byte(block("PRIVATE KEY", inPKCS8(privateRSA(8192, 4096)))), "is an RSA key of 8192 bits, expected at most 4096"},
		"a public key":                  {verifier, public, "is an RSA key of 400000 bits, expected at most 4096"},
		"a public key in PEM":           {verifier, []byte(block("PUBLIC KEY", public)), "is an RSA key of 400000 bits, expected at most 4096"},
		"the key of a certificate":      {verifier, []byte(certificateOver(huge)), "has a certificate, number 1, whose key is an RSA key of 400000 bits, expected at most 4096"},
		"nothing, within the bound":     {signer, privateRSA(4096, 4096), "has content that is DER, but not a private key of PKCS #8, PKCS #1 or SEC 1"},
	} {
		t.Run(sentence, func(t *testing.T) {
			began := time.Now()
			err := c.parse(c.data)
			if err == nil || err.Error() != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
			if took := time.Since(began); took > soon {
				t.Errorf("took %s", took)
			}
		})
	}
}

// certificateOver returns a P-256 certificate in which another public key replaces the original. Its signature is wrong, but
// parsers do not check the signature.
func certificateOver(public *rsa.PublicKey) string {
	decoded, _ := pem.Decode([]byte(certificate(ecKey, ecKey, nil)))
	var outer struct{ TBS, Algorithm, Signature asn1.RawValue }
	if _, err := asn1.Unmarshal(decoded.Bytes, &outer); err != nil {
		panic(err)
	}
	var parts []asn1.RawValue
	if _, err := asn1.Unmarshal(outer.TBS.FullBytes, &parts); err != nil {
		panic(err)
	}
	parts[6] = asn1.RawValue{FullBytes: must(x509.MarshalPKIXPublicKey(public))}
	outer.TBS = asn1.RawValue{FullBytes: must(asn1.Marshal(parts))}
	return block("CERTIFICATE", must(asn1.Marshal(outer)))
}

func TestAKeyOfAFileIsNotLargerThanAnyProfileAllows(t *testing.T) {
	huge := block("PUBLIC KEY", must(x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: oddOf(16_385), E: 65537})))
	dir := t.TempDir()
	write(t, dir+"/huge.pub", huge)
	write(t, dir+"/chain.crt", certificateOver(&rsa.PublicKey{N: oddOf(16_385), E: 65537}))
	event := watch(t, dir).next()
	var got []string
	for _, problem := range event.Problems {
		got = append(got, problem.String())
	}
	want := []string{
		"chain.crt: has a certificate, number 1, whose key is an RSA key of 16385 bits, expected at most 16384",
		"huge.pub: is an RSA key of 16385 bits, expected at most 16384",
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("problems %q, want %q", got, want)
	}
}
