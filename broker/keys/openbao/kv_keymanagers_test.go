// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package openbao_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	server "github.com/crypto-broker/crypto-broker-operator/test/openbao"
)

// store opens a provider of the key-value engine with the rights of the documentation.
func store(t *testing.T, s *server.Server, cacheTime time.Duration) providers.Provider {
	t.Helper()
	config := configOf(s, providers.OpenBaoSettings{Engine: "kv"})
	config.CacheTime = cacheTime
	return open(t, config, credentialsOf(t, s, s.TokenWith(t, policyOf(t, "kv"))))
}

func put(t *testing.T, s *server.Server, path string, fields map[string]any) {
	t.Helper()
	s.Do(t, http.MethodPost, "secret/data/"+path, map[string]any{"data": fields})
}

func TestTheBrokerReadsKeysOfTheKeyValueEngine(t *testing.T) {
	s := server.Start(t)
	p := store(t, s, -time.Second)
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(pair)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, pair.Public(), pair)
	if err != nil {
		t.Fatal(err)
	}

	t.Run("an AES key in hexadecimal digits, as released brokers have it", func(t *testing.T) {
		put(t, s, "apps/orders", map[string]any{"key": "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", "note": 7})
		key := find(t, p, keys.Name{ID: "apps/orders"})
		if key.Remote() || key.Version() != "1" || key.Cipher(t.Context()).KeySize() != 32 {
			t.Errorf("found remote %t, version %q", key.Remote(), key.Version())
		}
	})
	t.Run("versions of a secret are versions of the key", func(t *testing.T) {
		nonce := make([]byte, 12)
		put(t, s, "apps/orders", map[string]any{"key": strings.Repeat("07", 16)})
		newest, first := find(t, p, keys.Name{ID: "apps/orders"}), find(t, p, keys.Name{ID: "apps/orders", Version: "1"})
		if newest.Version() != "2" || newest.Cipher(t.Context()).KeySize() != 16 || first.Cipher(t.Context()).KeySize() != 32 {
			t.Errorf("found version %q", newest.Version())
		}
		if _, _, err := first.Cipher(t.Context()).Seal(nonce, []byte("x"), nil); err != nil {
			t.Errorf("a nonce of the caller: %v", err)
		}
		s.Do(t, http.MethodPut, "secret/destroy/apps/orders", map[string]any{"versions": []int{1}})
		if _, err := p.Key(t.Context(), keys.Name{ID: "apps/orders", Version: "1"}); !errors.Is(err, keys.ErrNotFound) {
			t.Errorf("a version that was destroyed: got %v, want ErrNotFound", err)
		}
	})
	for sentence, content := range map[string]string{
		"a private key in PEM":                               pemOf("PRIVATE KEY", der),
		"a private key in PEM after a byte order mark":       "\ufeff" + pemOf("PRIVATE KEY", der),
		"a private key as hexadecimal digits of its DER":     hex.EncodeToString(der),
		"a private key as hexadecimal digits of PEM as well": hex.EncodeToString([]byte(pemOf("PRIVATE KEY", der))),
	} {
		t.Run(sentence, func(t *testing.T) {
			put(t, s, "apps/issuer", map[string]any{"key": content, "certificate": pemOf("CERTIFICATE", certificate)})
			key := find(t, p, keys.Name{ID: "apps/issuer"})
			if !pair.PublicKey.Equal(key.Public()) || !key.Signs() || !key.OfAuthority() {
				t.Error("it is another key, or not the one of an authority")
			}
		})
	}
	t.Run("what is no key is refused without a part of it", func(t *testing.T) {
		for sentence, fields := range map[string]map[string]any{
			"no field key":        {"value": "00"},
			"not hexadecimal":     {"key": "secret-that-is-not-hex"},
			"a number":            {"key": 12345678},
			"seven bytes":         {"key": "01020304050607"},
			"a key of another":    {"key": strings.Repeat("07", 16), "certificate": pemOf("CERTIFICATE", certificate)},
			"other than ASCII":    {"key": "\u00e9\u0001"},
			"a damaged PEM block": {"key": "-----BEGIN PRIVATE KEY-----\nc2VjcmV0LXRoYXQ=\n-----END PRIVATE KEY-----\n"},
		} {
			put(t, s, "apps/wrong", fields)
			_, err := p.Key(t.Context(), keys.Name{ID: "apps/wrong"})
			if !errors.Is(err, keys.ErrUnusable) || strings.Contains(err.Error(), "secret-that") || strings.Contains(err.Error(), "12345678") || strings.Contains(err.Error(), "0102") {
				t.Errorf("%s: got %v, want ErrUnusable without the value", sentence, err)
			}
		}
	})
	t.Run("paths that lead elsewhere are no keys", func(t *testing.T) {
		for _, id := range []string{"../../sys/mounts", "apps/../other", "apps//issuer", "/apps/issuer", "apps/issuer/", "apps/none", "apps/issuer?version=1"} {
			if _, err := p.Key(t.Context(), keys.Name{ID: id}); !errors.Is(err, keys.ErrNotFound) {
				t.Errorf("%q: got %v, want ErrNotFound", id, err)
			}
		}
	})
}

func TestAKeyWhoseSecretHasNotChangedStaysTheSame(t *testing.T) {
	s := server.Start(t)
	p := store(t, s, 10*time.Millisecond)
	put(t, s, "apps/orders", map[string]any{"key": strings.Repeat("07", 16)})
	// The cipher counts its random nonces, so another read has to return the same cipher.
	first := find(t, p, keys.Name{ID: "apps/orders"}).Cipher(t.Context())
	for {
		if _, err := p.KeyNow(keys.Name{ID: "apps/orders"}); errors.Is(err, keys.ErrWouldWait) {
			break
		}
	}
	if again := find(t, p, keys.Name{ID: "apps/orders"}).Cipher(t.Context()); again != first {
		t.Error("the key is another one after it was read again")
	}
	put(t, s, "apps/orders", map[string]any{"key": strings.Repeat("08", 16)})
	for key := find(t, p, keys.Name{ID: "apps/orders"}); key.Version() != "2"; {
		key = find(t, p, keys.Name{ID: "apps/orders"})
	}
	if changed := find(t, p, keys.Name{ID: "apps/orders"}).Cipher(t.Context()); changed == first {
		t.Error("the key is the same one after its secret has changed")
	}
}
