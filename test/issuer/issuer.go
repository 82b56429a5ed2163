// SPDX-License-Identifier: Apache-2.0

// Package issuer is a small OpenID Connect issuer for tests: discovery, keys that rotate, and a token endpoint for client
// credentials that binds tokens to the key of a DPoP proof (RFC 9449). It listens on the loopback address, unless it is told
// another one.
package issuer

import (
	"crypto"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Options are what an issuer is.
type Options struct {
	// HTTP serves without TLS.
	HTTP bool
	// Host is the address of this machine that it listens on, the loopback address if it is empty.
	Host string
	// Certificate is for Host. Without one, the certificate is for the loopback address only.
	Certificate *tls.Certificate
	// Audience is the audience of the tokens of the token endpoint.
	Audience string
	// Algorithm is the algorithm of the first key, ES256 if it is empty.
	Algorithm jose.SignatureAlgorithm
	// Now returns the time, [time.Now] if it is nil.
	Now func() time.Time
}

// Client is a program that gets tokens.
type Client struct {
	ID, Secret string
	// Claims are added to its tokens, and replace others.
	Claims map[string]any
}

// Issuer is an issuer that runs.
type Issuer struct {
	// URL is the issuer in tokens.
	URL string

	options Options
	server  *httptest.Server

	mu       sync.Mutex
	clients  map[string]Client
	key      jose.JSONWebKey
	previous []any
	extra    []any
	asked    map[string]int
	replace  http.Handler
	rotated  int
}

// Start starts an issuer that ends with the test.
func Start(t testing.TB, options Options) *Issuer {
	t.Helper()
	i, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	return i
}

// New starts an issuer. Close ends it.
func New(options Options) (*Issuer, error) {
	if options.Algorithm == "" {
		options.Algorithm = jose.ES256
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	i := &Issuer{options: options, clients: map[string]Client{}, asked: map[string]int{}}
	if err := i.Rotate(options.Algorithm); err != nil {
		return nil, err
	}
	i.server = httptest.NewUnstartedServer(http.HandlerFunc(i.serve))
	if options.Host != "" {
		listener, err := net.Listen("tcp", net.JoinHostPort(options.Host, "0"))
		if err != nil {
			return nil, err
		}
		_ = i.server.Listener.Close() // no token names this URL yet
		i.server.Listener = listener
	}
	if options.Certificate != nil {
		i.server.TLS = &tls.Config{Certificates: []tls.Certificate{*options.Certificate}, MinVersion: tls.VersionTLS13}
	}
	if options.HTTP {
		i.server.Start()
	} else {
		i.server.StartTLS()
	}
	i.URL = i.server.URL
	return i, nil
}

// Close ends the issuer.
func (i *Issuer) Close() { i.server.Close() }

// Authorities returns the certificate of the issuer as PEM, or nothing without TLS.
func (i *Issuer) Authorities() []byte {
	if i.options.HTTP {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.server.Certificate().Raw})
}

// Add registers a program.
func (i *Issuer) Add(client Client) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.clients[client.ID] = client
}

// Rotate makes a new key for the tokens from now on. The old one stays published until [Issuer.Withdraw].
func (i *Issuer) Rotate(algorithm jose.SignatureAlgorithm) error {
	private, err := NewKey(algorithm)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.key.Key != nil {
		i.previous = append(i.previous, i.key.Public())
	}
	i.rotated++
	i.key = jose.JSONWebKey{Key: private, KeyID: fmt.Sprintf("key-%d", i.rotated), Algorithm: string(algorithm), Use: "sig"}
	return nil
}

// Withdraw publishes only the key that signs.
func (i *Issuer) Withdraw() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.previous = nil
}

// Publish adds any entries to the published keys.
func (i *Issuer) Publish(entries ...any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.extra = entries
}

// Replace answers all requests with a handler, or as usual again with nil.
func (i *Issuer) Replace(handler http.Handler) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.replace = handler
}

// Key returns the key that signs.
func (i *Issuer) Key() jose.JSONWebKey {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.key
}

// Asked returns the number of requests for a path.
func (i *Issuer) Asked(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked[path]
}

// Claims returns the claims of a good token for a subject, which is bound to a key unless that is nil.
func (i *Issuer) Claims(subject string, bound crypto.Signer) map[string]any {
	now := i.options.Now()
	claims := map[string]any{
		"iss": i.URL, "sub": subject, "aud": i.options.Audience, "client_id": subject,
		"iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
	}
	if bound != nil {
		claims["cnf"] = map[string]any{"jkt": Thumbprint(bound.Public())}
	}
	return claims
}

// Token signs claims with the key of the issuer.
func (i *Issuer) Token(claims map[string]any) string {
	key := i.Key()
	return Sign(key, map[string]any{"typ": "at+jwt", "kid": key.KeyID}, claims)
}

// The paths of the issuer.
const (
	discoveryPath = "/.well-known/openid-configuration"
	KeysPath      = "/keys"
	tokenPath     = "/token"
	// keycloakPath is the same token endpoint where Keycloak has it. OpenTDF's JavaScript client does not read where it is.
	keycloakPath = "/protocol/openid-connect/token"
)

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.asked[r.URL.Path]++
	replace := i.replace
	i.mu.Unlock()
	switch {
	case replace != nil:
		replace.ServeHTTP(w, r)
	case r.URL.Path == discoveryPath:
		answer(w, http.StatusOK, map[string]any{
			"issuer": i.URL, "jwks_uri": i.URL + KeysPath, "token_endpoint": i.URL + tokenPath,
			"grant_types_supported": []string{"client_credentials"},
			// OpenID Connect Discovery requires these, and OpenTDF's Java SDK reads them.
			"subject_types_supported": []string{"public"}, "response_types_supported": []string{"token"},
			"id_token_signing_alg_values_supported": []string{"ES256"},
			"dpop_signing_alg_values_supported":     []string{"ES256", "ES384", "ES512", "RS256"},
		})
	case r.URL.Path == KeysPath:
		i.mu.Lock()
		keys := append(append([]any{i.key.Public()}, i.previous...), i.extra...)
		i.mu.Unlock()
		answer(w, http.StatusOK, map[string]any{"keys": keys})
	case (r.URL.Path == tokenPath || r.URL.Path == keycloakPath) && r.Method == http.MethodPost:
		i.issue(w, r)
	default:
		http.NotFound(w, r)
	}
}

// issue answers a request for a token (RFC 6749, section 4.4, and RFC 9449, section 5).
func (i *Issuer) issue(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, code string) { answer(w, status, map[string]any{"error": code}) }
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	i.mu.Lock()
	client, known := i.clients[id]
	i.mu.Unlock()
	if !known || client.Secret != secret {
		refuse(http.StatusUnauthorized, "invalid_client")
		return
	}
	if r.PostFormValue("grant_type") != "client_credentials" {
		refuse(http.StatusBadRequest, "unsupported_grant_type")
		return
	}
	claims, kind := i.Claims(id, nil), "Bearer"
	if proofs := r.Header.Values("DPoP"); len(proofs) > 0 {
		thumbprint, err := i.boundBy(proofs, i.URL+r.URL.Path)
		if err != nil {
			refuse(http.StatusBadRequest, "invalid_dpop_proof")
			return
		}
		claims["cnf"], kind = map[string]any{"jkt": thumbprint}, "DPoP"
	}
	maps.Copy(claims, client.Claims)
	answer(w, http.StatusOK, map[string]any{"access_token": i.Token(claims), "token_type": kind, "expires_in": 300})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}
