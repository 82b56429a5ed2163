// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

func TestTheKeyThatOneProfileListsIsNoOtherProfiles(t *testing.T) {
	const profiles = `
- Name: Orders
  Callers: {Containers: [a]}
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, KeyIds: [{Id: orders}]}}
- Name: FIPS-140-3-256bit
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random}}
- Name: Issuing
  API:
    SignData: {SignAlg: ecdsa, HashAlg: sha-256}
    SignCertificate:
      SignAlg: ecdsa
      HashAlg: sha-256
      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 1h}
      KeyConstraints: {Subject: {ECDSA: {MinKeySize: 256, MaxKeySize: 256}}, Issuer: {ECDSA: {MinKeySize: 256, MaxKeySize: 256}}}
      KeyIds: [{Id: ca}]
`
	conn := connect(t, startWithKeys(t, profiles, map[string]string{"orders.bin": strings.Repeat("o", 32), "ca.key": keyPEM(ecKey)}).socket(""))
	sealed := message{}.text(cipherNonce, strings.Repeat("n", 12)).text(cipherTag, strings.Repeat("t", 16))
	refuses(t, conn, methodDecryptV1, message{}.text(dataProfile, "FIPS-140-3-256bit").bytes(dataKey, byID("orders")).text(dataText, "text").bytes(dataCipherMetadata, sealed),
		codes.PermissionDenied, `DecryptData with profile "FIPS-140-3-256bit": the profile lists no keys of the broker, so requests bring their own; to use the key "orders", add it to API.EncryptData.KeyIds`)
	refuses(t, conn, methodSignV1, signing("Issuing", one(byID("ca")), "the part of a certificate that is signed"),
		codes.PermissionDenied, `SignData with profile "Issuing": the profile lists no keys of the broker, so requests bring their own; to use the key "ca", add it to API.SignData.KeyIds`)
}

// authorityOf is a certificate of a certificate authority.
func authorityOf(key crypto.Signer) string {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, BasicConstraintsValid: true, IsCA: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestTheKeyOfACertificateAuthoritySignsNoData(t *testing.T) {
	const profiles = `
- Name: Every
  API: {SignData: {SignAlg: ecdsa, HashAlg: sha-256, KeyIds: [{Id: "*"}]}}
- Name: Listed
  API: {SignData: {SignAlg: ecdsa, HashAlg: sha-256, KeyIds: [{Id: ca}, {Id: copy}]}}
`
	leaf := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	conn := connect(t, startWithKeys(t, profiles, map[string]string{
		"ca.key": keyPEM(ecKey), "ca.crt": authorityOf(ecKey), "copy.key": keyPEM(ecKey), "leaf.key": keyPEM(leaf), "leaf.crt": certificateOf(leaf),
	}).socket(""))
	for generation, g := range dataGenerations {
		for _, name := range []string{"Every", "Listed"} {
			for _, id := range []string{"ca", "copy"} {
				refuses(t, conn, g.sign, signing(name, one(byID(id)), "text"), codes.FailedPrecondition,
					fmt.Sprintf(`SignData with profile %q: the key %q belongs to a certificate authority (CA:TRUE or keyCertSign in a certificate beside the broker's keys), expected a key that signs no certificates`, name, id))
			}
		}
		if got := ask(t, conn, g.sign, signing("Every", one(byID("leaf")), "text")); len(got[1]) != 64 {
			t.Errorf("%s: another key made a signature of %d bytes", generation, len(got[1]))
		}
		digest := crypto.SHA256.New()
		digest.Write([]byte("text"))
		r, s, err := ecdsa.Sign(rand.Reader, ecKey, digest.Sum(nil))
		if err != nil {
			t.Fatal(err)
		}
		signature := string(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
		if got := ask(t, conn, g.verify, verification("Every", one(byID("ca")), "text", signature)); len(got) == 0 {
			t.Errorf("%s: the key does not verify", generation)
		}
	}
}

// oversized returns an RSA public key with which one operation would take minutes.
func oversized() *rsa.PublicKey {
	n := new(big.Int).Lsh(big.NewInt(1), 300_000)
	return &rsa.PublicKey{N: n.Sub(n, big.NewInt(1)), E: 65537}
}

// withKey replaces the public key in a certificate or a request: the part with this number. Its signature is wrong then, but
// parsers do not check the signature.
func withKey(t *testing.T, text string, part int, public *rsa.PublicKey) string {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	var outer struct{ Content, Algorithm, Signature asn1.RawValue }
	var parts []asn1.RawValue
	for _, into := range []any{&outer, &parts} {
		if _, err := asn1.Unmarshal(block.Bytes, into); err != nil {
			t.Fatal(err)
		}
		if into == any(&outer) {
			block.Bytes = outer.Content.FullBytes
		}
	}
	parts[part] = asn1.RawValue{FullBytes: must(x509.MarshalPKIXPublicKey(public))}
	outer.Content = asn1.RawValue{FullBytes: must(asn1.Marshal(parts))}
	block.Bytes = must(asn1.Marshal(outer))
	return string(pem.EncodeToMemory(block))
}

func TestAnRSAKeyOfARequestIsRefusedForItsSizeBeforeAnythingIsDoneWithIt(t *testing.T) {
	const certify = `SignAlg: rsa, HashAlg: sha-256, Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 1h}, KeyConstraints: `
	const profiles = `
- Name: RSA
  API: {SignData: {SignAlg: rsa, HashAlg: sha-256}}
- Name: Larger
  API: {SignData: {SignAlg: rsa, HashAlg: sha-256, KeyConstraints: {Subject: {RSA: {MinKeySize: 2048, MaxKeySize: 6144}}}}}
- Name: Certify
  API: {SignCertificate: {` + certify + `{Subject: {RSA: {MinKeySize: 2048, MaxKeySize: 3072}}, Issuer: {RSA: {MinKeySize: 2048, MaxKeySize: 4096}}}}}
`
	conn := connect(t, start(t, profiles).socket(""))
	public := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: must(x509.MarshalPKIXPublicKey(oversized()))}))
	private := runOpenSSL(t, nil, "genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:4104")
	files := newIssuing(t)
	small := runOpenSSL(t, nil, "genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048")
	own := runOpenSSL(t, []byte(small), "req", "-x509", "-new", "-key", "/dev/stdin", "-days", "1", "-subj", "/CN=CA", "-addext", "keyUsage=critical,keyCertSign")
	certificate := func(csr, key, issuer string) message {
		return message{}.text(certProfile, "Certify").text(certCSR, csr).text(certKey, key).text(certIssuer, issuer)
	}
	for sentence, test := range map[string]struct {
		method  string
		request message
		want    string
	}{
		"to sign data":                      {methodSignV1, signing("RSA", one(raw(private)), "text"), `SignData with profile "RSA": keySource.single.rawKey is an RSA key of 4104 bits, expected at most 4096`},
		"to verify data":                    {methodVerifyV1, verification("RSA", one(raw(public)), "text", "s"), `VerifyData with profile "RSA": keySource.single.rawKey is an RSA key of 300000 bits, expected at most 4096`},
		"to verify data, in KeyConstraints": {methodVerifyV1, verification("Larger", one(raw(public)), "text", "s"), `VerifyData with profile "Larger": keySource.single.rawKey is an RSA key of 300000 bits, expected at most 6144`},
		"to verify data, in a certificate": {methodVerifyV1, verification("RSA", one(raw(withKey(t, own, 6, oversized()))), "text", "s"),
			`VerifyData with profile "RSA": keySource.single.rawKey has a certificate, number 1, whose key is an RSA key of 300000 bits, expected at most 4096`},
		"to sign a certificate":     {methodSignCertificateV1, certificate(files.csr, private, own), `SignCertificate with profile "Certify": caPrivateKey is an RSA key of 4104 bits, expected at most 4096`},
		"of the issuer":             {methodSignCertificateV1, certificate(files.csr, small, withKey(t, own, 6, oversized())), `SignCertificate with profile "Certify": caCert has a key that is an RSA key of 300000 bits, expected at most 4096`},
		"that a certificate is for": {methodSignCertificateV1, certificate(withKey(t, files.csr, 2, oversized()), small, own), `SignCertificate with profile "Certify": csr is for an RSA key of 300000 bits, expected what the profile allows for subjects: RSA of 2048 to 3072 bits`},
	} {
		t.Run(sentence, func(t *testing.T) {
			began := time.Now()
			refuses(t, conn, test.method, test.request, codes.InvalidArgument, test.want)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
	t.Run("unless KeyConstraints allow it", func(t *testing.T) {
		if got := ask(t, conn, methodSignV1, signing("Larger", one(raw(private)), "text")); len(got[1]) != 513 {
			t.Errorf("a signature of %d bytes", len(got[1]))
		}
	})
}
