// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package openbao_test

import (
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	server "github.com/crypto-broker/crypto-broker-operator/test/openbao"
)

func pemOf(label string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der}))
}

func TestWhatAServerRefusesHasATypedError(t *testing.T) {
	s := server.Start(t)
	makeKey(t, s, "a", "aes256-gcm96")
	t.Run("a token without the right is denied", func(t *testing.T) {
		p := open(t, configOf(s, providers.OpenBaoSettings{}), credentialsOf(t, s, s.TokenWith(t, `path "transit/keys/b" { capabilities = ["read"] }`)))
		if _, err := p.Key(t.Context(), keys.Name{ID: "a"}); !errors.Is(err, keys.ErrDenied) {
			t.Errorf("got %v, want ErrDenied", err)
		}
	})
	t.Run("a token that does not exist is denied, and not in the error", func(t *testing.T) {
		p := open(t, configOf(s, providers.OpenBaoSettings{}), credentialsOf(t, s, "no-such-token"))
		if _, err := p.Key(t.Context(), keys.Name{ID: "a"}); !errors.Is(err, keys.ErrDenied) || strings.Contains(err.Error(), "no-such-token") {
			t.Errorf("got %v, want ErrDenied", err)
		}
	})
	t.Run("a server of an unknown authority is denied", func(t *testing.T) {
		p := open(t, configOf(s, providers.OpenBaoSettings{}), providers.Credentials{providers.Token: []byte(s.Token)})
		if _, err := p.Key(t.Context(), keys.Name{ID: "a"}); !errors.Is(err, keys.ErrDenied) {
			t.Errorf("got %v, want ErrDenied", err)
		}
	})
	t.Run("an engine that is not there is not found", func(t *testing.T) {
		p := open(t, configOf(s, providers.OpenBaoSettings{Mount: "teams/none"}), credentialsOf(t, s, s.Token))
		if _, err := p.Key(t.Context(), keys.Name{ID: "a"}); !errors.Is(err, keys.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	})
	t.Run("requests beyond a quota are throttled", func(t *testing.T) {
		s.Do(t, http.MethodPost, "sys/quotas/rate-limit/few", map[string]any{"path": "transit", "rate": 0.001})
		defer s.Do(t, http.MethodDelete, "sys/quotas/rate-limit/few", nil)
		p := transit(t, s)
		var err error
		for range 10 {
			if _, err = p.Key(t.Context(), keys.Name{ID: "a"}); err != nil {
				break
			}
		}
		if !errors.Is(err, keys.ErrThrottled) {
			t.Errorf("got %v, want ErrThrottled", err)
		}
	})
	t.Run("a check returns the version", func(t *testing.T) {
		if version, err := transit(t, s).Check(t.Context()); err != nil || version != server.Version {
			t.Errorf("got %q, %v, want %s", version, err, server.Version)
		}
	})
	t.Run("a server that is sealed is not available", func(t *testing.T) {
		s.Do(t, http.MethodPut, "sys/seal", nil)
		p := transit(t, s)
		if _, err := p.Key(t.Context(), keys.Name{ID: "a"}); !errors.Is(err, keys.ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable", err)
		}
		if _, err := p.Check(t.Context()); !errors.Is(err, keys.ErrUnavailable) || !strings.Contains(err.Error(), "sealed") {
			t.Errorf("a check: got %v, want ErrUnavailable and that it is sealed", err)
		}
	})
}

func TestAnEndpointThatIsGoneCostsNoCall(t *testing.T) {
	s := server.Start(t)
	makeKey(t, s, "a", "aes256-gcm96")
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close() // nothing listens on this port any more
	config := configOf(s, providers.OpenBaoSettings{})
	config.Endpoints = []string{"https://" + gone.Addr().String(), s.URL}
	config.CacheTime = -time.Second
	p := open(t, config, credentialsOf(t, s, s.Token))
	for range 20 {
		find(t, p, keys.Name{ID: "a"})
	}
	if err := p.(keys.Creator).Rotate(t.Context(), "a"); err != nil {
		t.Errorf("a rotation: %v", err)
	}
	if status := p.Status(); status[0].Usable || !status[1].Usable || status[1].Connections == 0 {
		t.Errorf("found %+v, want the first endpoint not usable and the second connected", status)
	}
	s.Kill()
	if _, err := p.Key(t.Context(), keys.Name{ID: "a"}); !errors.Is(err, keys.ErrUnavailable) {
		t.Errorf("without any server: got %v, want ErrUnavailable", err)
	}
}

// The rights in the documentation are enough, and each of them is necessary.
func TestATokenNeedsOnlyTheRightsThatTheDocumentationHas(t *testing.T) {
	s := server.Start(t)
	makeKey(t, s, "orders", "aes256-gcm96")
	makeKey(t, s, "issuer", "ecdsa-p256")
	policy := policyOf(t, "transit")
	p := open(t, configOf(s, providers.OpenBaoSettings{}), credentialsOf(t, s, s.TokenWith(t, policy)))
	nonce, ciphertext, tag, err := find(t, p, keys.Name{ID: "orders"}).Cipher(t.Context()).SealRandom([]byte("secret"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := find(t, p, keys.Name{ID: "orders"}).Cipher(t.Context()).Open(nonce, ciphertext, tag, nil); err != nil {
		t.Error(err)
	}
	if _, err := find(t, p, keys.Name{ID: "issuer"}).Signer(t.Context()).Sign(nil, make([]byte, 32), hashOptions); err != nil {
		t.Error(err)
	}
	if err := p.(keys.Creator).Rotate(t.Context(), "orders"); !errors.Is(err, keys.ErrDenied) {
		t.Errorf("a rotation, which needs a right of its own: got %v, want ErrDenied", err)
	}
}
