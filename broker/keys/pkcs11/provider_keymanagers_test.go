// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers && pkcs11

package pkcs11_test

import (
	"bytes"
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pkcs11"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/test/softhsm"
)

func TestMain(m *testing.M) { os.Exit(softhsm.Run(m)) }

var p256, p521 = asn1.ObjectIdentifier{1, 2, 840, 10045, 3, 1, 7}, asn1.ObjectIdentifier{1, 3, 132, 0, 35}

// try opens a provider that remembers nothing, so that tests see changes at once.
func try(t *testing.T, label, pin string, more providers.Credentials) (providers.Provider, error) {
	t.Helper()
	config := &providers.Config{
		Name: "hsm", Type: providers.PKCS11, ActsAsProgram: true, CacheTime: -time.Second, PKCS11: &providers.PKCS11Settings{Module: softhsm.Library, TokenLabel: label},
	}
	credentials := providers.Credentials{providers.PIN: []byte(pin)}
	for name, value := range more {
		credentials[name] = value
	}
	p, err := providers.Types{providers.PKCS11: pkcs11.Open}.Open(config, credentials)
	clear(credentials[providers.PIN]) // cleared, because the provider must have its own copy
	if err == nil {
		t.Cleanup(p.Close)
	}
	return p, err
}

func open(t *testing.T, token *softhsm.Token) providers.Provider {
	t.Helper()
	p, err := try(t, token.Label, softhsm.PIN+"\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func find(t *testing.T, p keys.Provider, id string) *keys.Key {
	t.Helper()
	key, err := p.Key(t.Context(), keys.Name{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestPrivateKeysSignInTheirToken(t *testing.T) {
	token := softhsm.NewToken(t, "signs")
	token.MakeRSA(t, "rsa", 1, 2048)
	token.MakeEC(t, "p256", 1, p256)
	token.MakeEC(t, "p521", 1, p521)
	token.MakeEd25519(t, "ed25519", 1)
	p := open(t, token)
	short, long := sha256.Sum256([]byte("message")), sha512.Sum512([]byte("message"))
	for sentence, c := range map[string]struct {
		id     string
		digest []byte
		opts   crypto.SignerOpts
	}{
		"PKCS #1 v1.5 with SHA-256":               {"rsa", short[:], crypto.SHA256},
		"PKCS #1 v1.5 with SHA-512":               {"rsa", long[:], crypto.SHA512},
		"PSS with a salt as long as the digest":   {"rsa", short[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256}},
		"PSS with a salt of another length":       {"rsa", long[:], &rsa.PSSOptions{SaltLength: 20, Hash: crypto.SHA512}},
		"PSS with the longest salt":               {"rsa", short[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthAuto, Hash: crypto.SHA256}},
		"ECDSA":                                   {"p256", short[:], crypto.SHA256},
		"ECDSA with a digest that is longer":      {"p256", long[:], crypto.SHA512},
		"ECDSA with a key that is not of 8 bytes": {"p521", long[:], crypto.SHA512},
		"Ed25519, which signs a message":          {"ed25519", []byte("message"), crypto.Hash(0)},
		"Ed25519 with a long message":             {"ed25519", make([]byte, 100_000), crypto.Hash(0)},
	} {
		t.Run(sentence, func(t *testing.T) {
			key := find(t, p, c.id)
			signature, err := key.Signer(t.Context()).Sign(rand.Reader, c.digest, c.opts)
			if err != nil {
				t.Fatal(err)
			}
			valid := false
			switch public := key.Public().(type) {
			case *rsa.PublicKey:
				if pss, ok := c.opts.(*rsa.PSSOptions); ok {
					valid = rsa.VerifyPSS(public, pss.Hash, c.digest, signature, &rsa.PSSOptions{SaltLength: pss.SaltLength, Hash: pss.Hash}) == nil
				} else {
					valid = rsa.VerifyPKCS1v15(public, c.opts.HashFunc(), c.digest, signature) == nil
				}
			case *ecdsa.PublicKey:
				valid = ecdsa.VerifyASN1(public, c.digest, signature)
			case ed25519.PublicKey:
				valid = ed25519.Verify(public, c.digest, signature)
			}
			if !valid {
				t.Error("the signature is not valid")
			}
		})
	}
	if _, err := find(t, p, "rsa").Signer(t.Context()).Sign(rand.Reader, make([]byte, 20), crypto.SHA1); !errors.Is(err, keys.ErrUnusable) {
		t.Errorf("SHA-1: got %v, want ErrUnusable", err)
	}
	if _, err := find(t, p, "ed25519").Signer(t.Context()).Sign(rand.Reader, long[:], crypto.SHA512); !errors.Is(err, keys.ErrUnusable) {
		t.Errorf("a digest with Ed25519: got %v, want ErrUnusable", err)
	}
	if _, err := find(t, p, "p256").Signer(t.Context()).Sign(rand.Reader, short[:], crypto.Hash(0)); !errors.Is(err, keys.ErrUnusable) {
		t.Errorf("a message with ECDSA: got %v, want ErrUnusable", err)
	}
}

func TestTheCertificateOfAKeyIsInItsTokenOrInTheCredentials(t *testing.T) {
	token := softhsm.NewToken(t, "certificates")
	token.MakeEC(t, "issuer", 1, p256)
	bare := find(t, open(t, token), "issuer")
	if bare.OfAuthority() || len(bare.Certificates()) != 0 {
		t.Error("a key without a certificate has one")
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Issuer"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, bare.Public(), bare.Signer(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	token.ImportCertificate(t, "issuer", 1, nil, der)
	p := open(t, token)
	if key := find(t, p, "issuer"); !key.OfAuthority() || len(key.Certificates()) != 1 || !bytes.Equal(key.Certificates()[0].Raw, der) {
		t.Error("the certificate of the token was not found")
	}
	token.MakeEC(t, "other", 2, p256)
	token.ImportCertificate(t, "other", 2, nil, der)
	if _, err := p.Key(t.Context(), keys.Name{ID: "other"}); !errors.Is(err, keys.ErrUnusable) {
		t.Errorf("the certificate of another key: got %v, want ErrUnusable", err)
	}
}

var material = []byte("0123456789abcdef0123456789abcdef")

func TestAESKeysEncryptInTheirToken(t *testing.T) {
	token := softhsm.NewToken(t, "encrypts")
	token.ImportAES(t, "orders", 1, material)
	c := find(t, open(t, token), "orders").Cipher(t.Context())
	if c.KeySize() != 32 {
		t.Errorf("the key has %d bytes", c.KeySize())
	}
	block, err := aes.NewCipher(material)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	for _, plaintext := range [][]byte{{}, []byte("plain"), make([]byte, 1<<20)} {
		for _, additional := range [][]byte{nil, []byte("additional")} {
			nonce, ciphertext, tag, err := c.SealRandom(plaintext, additional)
			if err != nil {
				t.Fatalf("%d bytes: %v", len(plaintext), err)
			}
			if got, err := gcm.Open(nil, nonce, append(bytes.Clone(ciphertext), tag...), additional); err != nil || !bytes.Equal(got, plaintext) {
				t.Errorf("%d bytes: Go does not decrypt what the token encrypted: %v", len(plaintext), err)
			}
			if got, err := c.Open(nonce, ciphertext, tag, additional); err != nil || !bytes.Equal(got, plaintext) {
				t.Errorf("%d bytes: the token does not decrypt: %v", len(plaintext), err)
			}
		}
	}
	nonce, ciphertext, tag, err := c.SealRandom([]byte("plain"), nil)
	if err != nil {
		t.Fatal(err)
	}
	tag[0] ^= 1
	if _, err := c.Open(nonce, ciphertext, tag, nil); !errors.Is(err, engine.ErrAuthentication) {
		t.Errorf("a forged tag: got %v, want ErrAuthentication", err)
	}
	tag[0] ^= 1
	if _, err := c.Open(nonce, ciphertext, tag, []byte("other")); !errors.Is(err, engine.ErrAuthentication) {
		t.Errorf("other additional data: got %v, want ErrAuthentication", err)
	}
}

func TestKeysWithOneLabelAreVersionsOfAKey(t *testing.T) {
	token := softhsm.NewToken(t, "versions")
	p := open(t, token)
	token.ImportAES(t, "orders", 9, material)
	first := find(t, p, "orders")
	sealed := func(key *keys.Key) func(*keys.Key) bool {
		nonce, ciphertext, tag, err := key.Cipher(t.Context()).SealRandom([]byte("plain"), nil)
		if err != nil {
			t.Fatal(err)
		}
		return func(by *keys.Key) bool {
			_, err := by.Cipher(t.Context()).Open(nonce, ciphertext, tag, nil)
			return err == nil
		}
	}
	opensFirst := sealed(first)
	token.ImportAES(t, "orders", 16, []byte(strings.Repeat("s", 16)))
	newest := find(t, p, "orders")
	old, err := p.Key(t.Context(), keys.Name{ID: "orders", Version: first.Version()})
	if err != nil {
		t.Fatal(err)
	}
	if first.Version() != "09" || newest.Version() != "10" || !opensFirst(old) || opensFirst(newest) || !sealed(newest)(newest) {
		t.Errorf("found the versions %q and %q", first.Version(), newest.Version())
	}
	token.Destroy(t, "orders", 9)
	if _, err := p.Key(t.Context(), keys.Name{ID: "orders", Version: "09"}); !errors.Is(err, keys.ErrNotFound) {
		t.Errorf("a version that was destroyed: got %v, want ErrNotFound", err)
	}
	if opensFirst(old) {
		t.Error("a key that was destroyed decrypts")
	}
	token.ImportAES(t, "orders", 16, material)
	if _, err := p.Key(t.Context(), keys.Name{ID: "orders"}); !errors.Is(err, keys.ErrUnusable) || !strings.Contains(err.Error(), `the same CKA_ID "10"`) {
		t.Errorf("two keys with one CKA_ID: got %v, want ErrUnusable", err)
	}
	if _, err := p.Key(t.Context(), keys.Name{ID: "none"}); !errors.Is(err, keys.ErrNotFound) {
		t.Errorf("no key: got %v, want ErrNotFound", err)
	}
}

func TestCallsGoOnWhenTheSessionsOfATokenEnd(t *testing.T) {
	token := softhsm.NewToken(t, "loses-sessions")
	token.MakeEC(t, "pair", 1, p256)
	p := open(t, token)
	digest := sha256.Sum256([]byte("message"))
	key := find(t, p, "pair")
	for range 3 {
		if _, err := key.Signer(t.Context()).Sign(rand.Reader, digest[:], crypto.SHA256); err != nil {
			t.Fatal(err)
		}
		token.EndSessions(t)
	}
}

func TestManyCallersShareTheSessionsOfAToken(t *testing.T) {
	token := softhsm.NewToken(t, "shared")
	token.MakeEC(t, "pair", 1, p256)
	token.ImportAES(t, "orders", 1, material)
	p := open(t, token)
	digest := sha256.Sum256([]byte("message"))
	var callers sync.WaitGroup
	for i := range 64 {
		callers.Go(func() {
			if i%2 == 0 {
				key := find(t, p, "pair")
				if _, err := key.Signer(t.Context()).Sign(rand.Reader, digest[:], crypto.SHA256); err != nil {
					t.Error(err)
				}
				return
			}
			c := find(t, p, "orders").Cipher(t.Context())
			text := fmt.Appendf(nil, "plaintext %d", i)
			nonce, ciphertext, tag, err := c.SealRandom(text, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if got, err := c.Open(nonce, ciphertext, tag, nil); err != nil || !bytes.Equal(got, text) {
				t.Errorf("decrypted to %q, %v", got, err)
			}
		})
	}
	callers.Wait()
	version, err := p.Check(t.Context())
	if status := p.Status(); err != nil || !strings.HasPrefix(version, "SoftHSM project SoftHSM v2 2.") || status[0].Endpoint != token.Label || !status[0].Usable || status[0].Connections > 8 {
		t.Errorf("the version is %q, %v, and the status %+v", version, err, status)
	}
}

func TestATokenIsAskedOnceWithAPINThatItDoesNotAccept(t *testing.T) {
	token := softhsm.NewToken(t, "wrong-pin")
	token.ImportAES(t, "orders", 1, material)
	p, err := try(t, token.Label, "87654321", nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		_, err := p.Key(t.Context(), keys.Name{ID: "orders"})
		if !errors.Is(err, keys.ErrDenied) || strings.Contains(err.Error(), "87654321") {
			t.Errorf("got %v, want ErrDenied", err)
		}
	}
	if _, err := p.Key(t.Context(), keys.Name{ID: "orders"}); err == nil || !strings.Contains(err.Error(), "did not accept the credential \"pin\" before") {
		t.Errorf("got %v, expected no other attempt", err)
	}
	right := open(t, token)
	find(t, right, "orders")
	other, err := try(t, token.Label, "87654321", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Key(t.Context(), keys.Name{ID: "orders"}); !errors.Is(err, keys.ErrDenied) || !strings.Contains(err.Error(), "another PIN") {
		t.Errorf("beside a provider with the right PIN: got %v, want ErrDenied", err)
	}
}

func TestAConfigurationThatCannotWorkIsRefused(t *testing.T) {
	for sentence, c := range map[string]struct {
		module, pin, want string
		unasked           bool
	}{
		"a library of the program, unasked": {softhsm.Library, softhsm.PIN, `this provider may not load a library into the program`, true},
		"no PIN":                            {softhsm.Library, "\n", `found no credential "pin", expected the PIN of the user of the token`, false},
		"no library":                        {"/nonexistent/lib.so", softhsm.PIN, `PKCS11.Module cannot be read: lstat /nonexistent: no such file or directory`, false},
		"a directory":                       {"/usr", softhsm.PIN, `PKCS11.Module is "/usr", which is not a file`, false},
		"a file of another use":             {"/etc/passwd", softhsm.PIN, `PKCS11.Module is "/etc/passwd", which cannot be loaded`, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			config := &providers.Config{Name: "hsm", Type: providers.PKCS11, ActsAsProgram: !c.unasked, PKCS11: &providers.PKCS11Settings{Module: c.module, TokenLabel: "l"}}
			_, err := providers.Types{providers.PKCS11: pkcs11.Open}.Open(config, providers.Credentials{providers.PIN: []byte(c.pin)})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), softhsm.PIN) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	p, err := try(t, "no-such-token", softhsm.PIN, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Key(t.Context(), keys.Name{ID: "a"}); !errors.Is(err, keys.ErrUnavailable) || !strings.Contains(err.Error(), `no token has the label "no-such-token"`) {
		t.Errorf("a token that is not there: got %v, want ErrUnavailable", err)
	}
}
