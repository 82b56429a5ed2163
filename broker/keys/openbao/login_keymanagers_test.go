// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package openbao_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/openbao"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	server "github.com/crypto-broker/crypto-broker-operator/test/openbao"
)

// reviewer is the part of the Kubernetes API with which OpenBao checks tokens. It counts the requests.
func reviewer(t *testing.T) (api *httptest.Server, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	api = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1",
			"status": map[string]any{"authenticated": true, "user": map[string]any{
				"username": "system:serviceaccount:shop:gateway", "uid": "1234",
				"groups": []string{"system:serviceaccounts", "system:serviceaccounts:shop"},
			}},
		})
	}))
	t.Cleanup(api.Close)
	return api, asked
}

func TestTheBrokerLogsInWithTheTokenOfItsServiceAccount(t *testing.T) {
	s := server.Start(t)
	makeKey(t, s, "a", "aes256-gcm96")
	api, asked := reviewer(t)
	s.Do(t, http.MethodPut, "sys/policies/acl/reader", map[string]any{"policy": `path "transit/keys/a" { capabilities = ["read"] }`})
	s.Do(t, http.MethodPost, "sys/auth/kubernetes", map[string]any{"type": "kubernetes"})
	s.Do(t, http.MethodPost, "auth/kubernetes/config", map[string]any{
		"kubernetes_host": api.URL, "token_reviewer_jwt": "x", "disable_local_ca_jwt": true,
		"kubernetes_ca_cert": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})),
	})
	s.Do(t, http.MethodPost, "auth/kubernetes/role/broker", map[string]any{
		"bound_service_account_names": "gateway", "bound_service_account_namespaces": "shop", "token_policies": "reader", "token_ttl": "1h",
	})
	encode := base64.RawURLEncoding.EncodeToString
	identity := encode([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." +
		encode([]byte(`{"iss":"kubernetes","sub":"system:serviceaccount:shop:gateway","iat":1700000000,"nbf":1700000000,"exp":4102444800,"kubernetes.io":{"namespace":"shop","serviceaccount":{"name":"gateway","uid":"1234"}}}`)) + "." + encode([]byte("signature"))
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(identity+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	openbao.UseServiceAccountToken(t, path)

	config := configOf(s, providers.OpenBaoSettings{Role: "broker"})
	config.CacheTime = -time.Second
	p := open(t, config, credentialsOf(t, s, ""))
	for range 5 {
		find(t, p, keys.Name{ID: "a"})
	}
	if got := asked.Load(); got != 1 {
		t.Errorf("the broker logged in %d times, want once", got)
	}
	s.Do(t, http.MethodPost, "sys/leases/revoke-prefix/auth/kubernetes/login", map[string]any{"sync": true})
	find(t, p, keys.Name{ID: "a"})
	if got := asked.Load(); got != 2 {
		t.Errorf("after its token was revoked, the broker has logged in %d times, want 2", got)
	}
	if _, err := p.Key(t.Context(), keys.Name{ID: "b"}); !errors.Is(err, keys.ErrDenied) {
		t.Errorf("a key that the role does not have: got %v, want ErrDenied", err)
	}

	config.OpenBao = &providers.OpenBaoSettings{Role: "unknown"}
	p = open(t, config, credentialsOf(t, s, ""))
	if _, err := p.Key(t.Context(), keys.Name{ID: "a"}); !errors.Is(err, keys.ErrDenied) {
		t.Errorf("a role that the server does not have: got %v, want ErrDenied", err)
	}
}
