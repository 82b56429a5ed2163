// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package openbao_test

import (
	"bytes"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/openbao"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	server "github.com/crypto-broker/crypto-broker-operator/test/openbao"
)

// configOf returns the configuration of a provider of the server.
func configOf(s *server.Server, settings providers.OpenBaoSettings) *providers.Config {
	return &providers.Config{Name: "bao", Type: providers.OpenBao, Endpoints: []string{s.URL}, OpenBao: &settings, ActsAsProgram: true}
}

// credentialsOf returns credentials with a token.
func credentialsOf(t *testing.T, s *server.Server, token string) providers.Credentials {
	t.Helper()
	authority, err := os.ReadFile(s.Authority)
	if err != nil {
		t.Fatal(err)
	}
	credentials := providers.Credentials{providers.Authorities: authority}
	if token != "" {
		credentials[providers.Token] = []byte(token)
	}
	return credentials
}

func open(t *testing.T, config *providers.Config, given providers.Credentials) providers.Provider {
	t.Helper()
	credentials := providers.Credentials{}
	for name, value := range given {
		credentials[name] = bytes.Clone(value)
	}
	p, err := providers.Types{providers.OpenBao: openbao.Open}.Open(config, credentials)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range credentials { // cleared, because the provider must have its own copy
		clear(value)
	}
	t.Cleanup(p.Close)
	return p
}

// transit opens a provider that remembers nothing, so that tests see changes at once.
func transit(t *testing.T, s *server.Server) providers.Provider {
	t.Helper()
	config := configOf(s, providers.OpenBaoSettings{})
	config.CacheTime = -time.Second
	return open(t, config, credentialsOf(t, s, s.Token))
}

// makeKey makes a key in Transit.
func makeKey(t *testing.T, s *server.Server, id, kind string) {
	t.Helper()
	s.Do(t, http.MethodPost, "transit/keys/"+id, map[string]any{"type": kind, "exportable": true})
}

func find(t *testing.T, p keys.Provider, name keys.Name) *keys.Key {
	t.Helper()
	key, err := p.Key(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
