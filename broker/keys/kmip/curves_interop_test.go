// SPDX-License-Identifier: Apache-2.0

//go:build interop

package kmip_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"

	kmipgo "github.com/ovh/kmip-go"
	"github.com/ovh/kmip-go/kmipclient"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/test/cosmian"
)

// createPair makes an elliptic curve key pair in the key manager, and returns the identifier of
// its private key.
func createPair(admin *kmipclient.Client, curve kmipgo.RecommendedCurve, name string) string {
	pair := admin.CreateKeyPair().ECDSA(curve, kmipgo.CryptographicUsageSign, kmipgo.CryptographicUsageVerify).Common().WithName(name).MustExec()
	admin.Activate(pair.PrivateKeyUniqueIdentifier).MustExec()
	return pair.PrivateKeyUniqueIdentifier
}

// registerPair imports an elliptic curve key pair into the key manager, and returns the identifier of its private key.
func registerPair(t *testing.T, admin *kmipclient.Client, curve elliptic.Curve, name string) string {
	t.Helper()
	pair, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public := admin.Register().WithKeyFormat(kmipclient.X509).PublicKey(&pair.PublicKey, kmipgo.CryptographicUsageVerify).WithName(name).MustExec()
	private := admin.Register().WithKeyFormat(kmipclient.PKCS8).PrivateKey(pair, kmipgo.CryptographicUsageSign).WithName(name).
		WithLink(kmipgo.LinkTypePublicKeyLink, public.UniqueIdentifier).MustExec()
	admin.Activate(private.UniqueIdentifier).MustExec()
	return private.UniqueIdentifier
}

func TestAnEllipticCurveKeySignsInTheKeyManager(t *testing.T) {
	servers := cosmian.Start(t, 1)
	p := open(t, servers, time.Minute)
	admin := administrator(t, servers)
	for name, test := range map[string]struct {
		hash   crypto.Hash
		curve  elliptic.Curve
		create func(name string) string
	}{
		"P-256 made there": {crypto.SHA256, elliptic.P256(), func(name string) string { return createPair(admin, kmipgo.RecommendedCurveP_256, name) }},
		"P-384 made there": {crypto.SHA384, elliptic.P384(), func(name string) string { return createPair(admin, kmipgo.RecommendedCurveP_384, name) }},
		"P-256 registered": {crypto.SHA256, elliptic.P256(), func(name string) string { return registerPair(t, admin, elliptic.P256(), name) }},
		"P-384 registered": {crypto.SHA384, elliptic.P384(), func(name string) string { return registerPair(t, admin, elliptic.P384(), name) }},
	} {
		t.Run(name, func(t *testing.T) {
			id := test.create(name)
			k := key(t, p, name, "")
			public, ok := k.Public().(*ecdsa.PublicKey)
			if !k.Remote() || k.Version() != id || !ok || public.Curve != test.curve {
				t.Fatalf("found version %s with a public key of type %T, remote %t", k.Version(), k.Public(), k.Remote())
			}
			signer := k.Signer(t.Context())
			state := test.hash.New()
			state.Write([]byte("message"))
			digest := state.Sum(nil)
			signature, err := crypto.SignMessage(signer, rand.Reader, []byte("message"), test.hash)
			if err != nil || !ecdsa.VerifyASN1(public, digest, signature) {
				t.Errorf("the signature of a message: %v", err)
			}
			signature, err = signer.Sign(rand.Reader, digest, test.hash)
			if err != nil || !ecdsa.VerifyASN1(public, digest, signature) {
				t.Errorf("the signature of a digest: %v", err)
			}
			template := &x509.Certificate{
				SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "issuer"}, IsCA: true, BasicConstraintsValid: true,
				NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			}
			der, err := x509.CreateCertificate(rand.Reader, template, template, public, signer)
			if err != nil {
				t.Fatal(err)
			}
			if certificate, err := x509.ParseCertificate(der); err != nil || certificate.CheckSignatureFrom(certificate) != nil {
				t.Errorf("the certificate that the key manager signed: %v", err)
			}
		})
	}
}

func TestANewPairWithTheSameNameSignsAndTheOldOneStaysAVersion(t *testing.T) {
	servers := cosmian.Start(t, 1)
	p := open(t, servers, -1)
	admin := administrator(t, servers)
	old := createPair(admin, kmipgo.RecommendedCurveP_256, "issuer")
	if got := key(t, p, "issuer", "").Version(); got != old {
		t.Fatalf("found version %s, want %s", got, old)
	}
	<-time.After(1100 * time.Millisecond) // the dates of KMIP have seconds
	current := createPair(admin, kmipgo.RecommendedCurveP_256, "issuer")
	k := key(t, p, "issuer", "")
	if k.Version() != current {
		t.Fatalf("found version %s, want %s", k.Version(), current)
	}
	if _, err := crypto.SignMessage(k.Signer(t.Context()), rand.Reader, []byte("message"), crypto.SHA256); err != nil {
		t.Error(err)
	}
	before, err := p.Key(t.Context(), keys.Name{ID: "issuer", Version: old})
	if err != nil || before.Version() != old || k.Public().(*ecdsa.PublicKey).Equal(before.Public()) {
		t.Errorf("the old version: %v", err)
	}
}
