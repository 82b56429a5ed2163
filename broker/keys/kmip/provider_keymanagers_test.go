// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers || interop

package kmip_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"os"
	"testing"
	"time"

	kmipgo "github.com/ovh/kmip-go"
	"github.com/ovh/kmip-go/kmipclient"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/kmip"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/test/keymanagers"
	"github.com/crypto-broker/crypto-broker-operator/test/kmipserver"
)

// open opens a provider of the servers.
func open(t *testing.T, servers *kmipserver.Servers, cache time.Duration) *kmip.Provider {
	t.Helper()
	credentials := providers.Credentials{}
	for name, path := range map[string]string{
		providers.ClientCertificate: servers.Certificate, providers.ClientKey: servers.Key, providers.Authorities: servers.Authority,
	} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		credentials[name] = data
	}
	types := providers.Types{providers.KMIP: kmip.Open}
	p, err := types.Open(&providers.Config{Name: "hsm", Type: providers.KMIP, Endpoints: servers.Addresses, CacheTime: cache}, credentials)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p.(*kmip.Provider)
}

// administrator is a client of the key manager that is not ours.
func administrator(t *testing.T, servers *kmipserver.Servers) *kmipclient.Client {
	t.Helper()
	client, err := kmipclient.DialContext(t.Context(), servers.Addresses[0], kmipclient.WithTlsConfig(servers.TLS(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func key(t *testing.T, p keys.Provider, id, version string) *keys.Key {
	t.Helper()
	k, err := p.Key(t.Context(), keys.Name{ID: id, Version: version})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestAnAESKeyIsFoundByItsNameAndItsOldVersionsByTheirs(t *testing.T) {
	keymanagers.EachKMIP(t, func(t *testing.T, product keymanagers.KMIP) {
		servers := product.Start(t, 1)
		p := open(t, servers, time.Minute)
		if _, err := p.Key(t.Context(), keys.Name{ID: "orders"}); !errors.Is(err, keys.ErrNotFound) {
			t.Fatalf("a key that does not exist: got %v, want ErrNotFound", err)
		}
		for _, err := range []error{p.CreateAES(t.Context(), "orders", 256), p.CreateAES(t.Context(), "other", 128)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		old := key(t, p, "orders", "")
		if again, err := p.KeyNow(keys.Name{ID: "orders"}); err != nil || again != old {
			t.Errorf("the key is not remembered: %v", err)
		}
		nonce, sealed, tag, err := old.Cipher(t.Context()).SealRandom([]byte("plain"), nil)
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(1100 * time.Millisecond) // PyKMIP sorts by dates, which have a resolution of one second in KMIP
		if err := p.Rotate(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
		current := key(t, p, "orders", "")
		if current.Version() == old.Version() {
			t.Error("the key has the same version after it was rotated")
		}
		if _, err := current.Cipher(t.Context()).Open(nonce, sealed, tag, nil); err == nil {
			t.Error("both versions are the same key")
		}
		if plain, err := key(t, p, "orders", old.Version()).Cipher(t.Context()).Open(nonce, sealed, tag, nil); err != nil || string(plain) != "plain" {
			t.Errorf("data of the old version: %v", err)
		}
		if byID := key(t, p, old.Version(), ""); byID.Version() != old.Version() {
			t.Errorf("by its unique identifier: found version %s", byID.Version())
		}
		// The name of a version comes with data. It must not reach a key of another id.
		other := key(t, p, "other", "")
		if _, err := p.Key(t.Context(), keys.Name{ID: "orders", Version: other.Version()}); !errors.Is(err, keys.ErrNotFound) {
			t.Errorf("a version of another key: got %v, want ErrNotFound", err)
		}
	})
}

func TestAKeyThatIsNotActiveProtectsNoNewData(t *testing.T) {
	keymanagers.EachKMIP(t, func(t *testing.T, product keymanagers.KMIP) {
		servers := product.Start(t, 1)
		p := open(t, servers, -1)
		admin := administrator(t, servers)
		made := admin.Create().AES(256, kmipgo.CryptographicUsageEncrypt|kmipgo.CryptographicUsageDecrypt).WithName("orders").MustExec()
		if _, err := p.Key(t.Context(), keys.Name{ID: "orders"}); !errors.Is(err, keys.ErrUnusable) {
			t.Errorf("before it is active: got %v, want ErrUnusable", err)
		}
		admin.Activate(made.UniqueIdentifier).MustExec()
		key(t, p, "orders", "")
		admin.Revoke(made.UniqueIdentifier).WithRevocationReasonCode(kmipgo.RevocationReasonCodeCessationOfOperation).MustExec()
		if _, err := p.Key(t.Context(), keys.Name{ID: "orders"}); !errors.Is(err, keys.ErrUnusable) {
			t.Errorf("after it was revoked: got %v, want ErrUnusable", err)
		}
		old := keys.Name{ID: "orders", Version: made.UniqueIdentifier}
		if _, err := p.Key(t.Context(), old); product.SendsDeactivated != (err == nil) {
			t.Errorf("after it was revoked, for old data: got %v, want a key: %t", err, product.SendsDeactivated)
		}
	})
}

func TestAPrivateKeySignsInTheKeyManager(t *testing.T) {
	keymanagers.EachKMIP(t, func(t *testing.T, product keymanagers.KMIP) {
		servers := product.Start(t, 1)
		p := open(t, servers, time.Minute)
		admin := administrator(t, servers)
		pair := admin.CreateKeyPair().RSA(2048, kmipgo.CryptographicUsageSign, kmipgo.CryptographicUsageVerify).
			Common().WithName("issuer").MustExec()
		admin.Activate(pair.PrivateKeyUniqueIdentifier).MustExec()
		k := key(t, p, "issuer", "")
		if !k.Remote() || k.Version() != pair.PrivateKeyUniqueIdentifier {
			t.Fatalf("found version %s, remote %t", k.Version(), k.Remote())
		}
		signer := k.Signer(t.Context())

		digest := sha256.Sum256([]byte("message"))
		signature, err := crypto.SignMessage(signer, rand.Reader, []byte("message"), crypto.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		if err := rsa.VerifyPKCS1v15(k.Public().(*rsa.PublicKey), crypto.SHA256, digest[:], signature); err != nil {
			t.Error(err)
		}

		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "issuer"}, IsCA: true, BasicConstraintsValid: true,
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), SignatureAlgorithm: x509.SHA256WithRSA,
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
		if err != nil {
			t.Fatal(err)
		}
		if certificate, err := x509.ParseCertificate(der); err != nil || certificate.CheckSignatureFrom(certificate) != nil {
			t.Errorf("the certificate that the key manager signed: %v", err)
		}

		// PyKMIP recognizes PSS only by its padding method, uses the longest possible salt, and does not sign digests.
		pss := &rsa.PSSOptions{SaltLength: 32, Hash: crypto.SHA256}
		_, ofPSS := crypto.SignMessage(signer, rand.Reader, []byte("message"), pss)
		_, ofDigest := signer.Sign(rand.Reader, digest[:], crypto.SHA256)
		_, ofPSSDigest := signer.Sign(rand.Reader, digest[:], pss)
		for what, err := range map[string]error{"PSS": ofPSS, "a digest": ofDigest, "PSS of a digest": ofPSSDigest} {
			if product.SignsAsAsked && err != nil || !product.SignsAsAsked && !errors.Is(err, keys.ErrUnusable) {
				t.Errorf("%s: got %v, want ErrUnusable: %t", what, err, !product.SignsAsAsked)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := crypto.SignMessage(k.Signer(ended), rand.Reader, []byte("message"), crypto.SHA256); !errors.Is(err, context.Canceled) {
			t.Errorf("after the call has ended: got %v, want context.Canceled", err)
		}
	})
}

func TestAKeyManagerThatIsAwayIsUnavailableAndKeysInMemoryGoOn(t *testing.T) {
	keymanagers.EachKMIP(t, func(t *testing.T, product keymanagers.KMIP) {
		servers := product.Start(t, 1)
		p := open(t, servers, time.Minute)
		if err := p.CreateAES(t.Context(), "orders", 256); err != nil {
			t.Fatal(err)
		}
		key(t, p, "orders", "")
		if version, err := p.Check(t.Context()); err != nil || version == "" {
			t.Errorf("version %q, %v", version, err)
		}
		servers.Kill(t, 0)
		if _, err := p.KeyNow(keys.Name{ID: "orders"}); err != nil {
			t.Errorf("the key in memory: %v", err)
		}
		if _, err := p.Key(t.Context(), keys.Name{ID: "other"}); !errors.Is(err, keys.ErrUnavailable) {
			t.Errorf("another key: got %v, want ErrUnavailable", err)
		}
		if _, err := p.Check(t.Context()); !errors.Is(err, keys.ErrUnavailable) {
			t.Errorf("the check: got %v, want ErrUnavailable", err)
		}
	})
}
