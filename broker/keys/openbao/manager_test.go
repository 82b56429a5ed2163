// SPDX-License-Identifier: Apache-2.0

package openbao_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/openbao"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
)

func TestAConfigurationThatCannotWorkIsRefusedWithOneSentence(t *testing.T) {
	token := providers.Credentials{providers.Token: []byte("t\n")}
	for sentence, c := range map[string]struct {
		endpoint    string
		settings    providers.OpenBaoSettings
		credentials providers.Credentials
		want        string
	}{
		"no token and no role":           {"https://a", providers.OpenBaoSettings{}, nil, `found no credential "token" and no OpenBao.Role, expected one of them`},
		"a token and a role":             {"https://a", providers.OpenBaoSettings{Role: "r"}, token, `found both the credential "token" and OpenBao.Role, expected one of them`},
		"a role of the program, unasked": {"https://a", providers.OpenBaoSettings{Role: "r"}, nil, `OpenBao.Role is set, expected the credential "token", because this provider may not act as the program itself`},
		"two tokens":                     {"https://a", providers.OpenBaoSettings{}, providers.Credentials{providers.Token: []byte("t t")}, `found a credential "token" with spaces or characters outside of ASCII, expected one token`},
		"no URL":                         {"openbao:8200", providers.OpenBaoSettings{}, token, `Endpoints[0] is "openbao:8200", expected a URL, such as https://openbao.example:8200`},
		"a path":                         {"https://a/v1", providers.OpenBaoSettings{}, token, `Endpoints[0] is "https://a/v1", expected a URL with a scheme, a host and a port only, such as https://openbao.example:8200`},
		"no TLS":                         {"http://openbao.example", providers.OpenBaoSettings{}, token, `Endpoints[0] is "http://openbao.example", expected https: without TLS, everybody on the network sees the token and the keys; http is only for this host, such as http://127.0.0.1:8200`},
		"a mount elsewhere":              {"https://a", providers.OpenBaoSettings{Mount: "../sys"}, token, `OpenBao.Mount is "../sys", expected a path such as secret or teams/payments, without an empty part, "." and ".."`},
	} {
		t.Run(sentence, func(t *testing.T) {
			config := &providers.Config{Name: "bao", Type: providers.OpenBao, Endpoints: []string{c.endpoint}, OpenBao: &c.settings}
			_, err := providers.Types{providers.OpenBao: openbao.Open}.Open(config, c.credentials)
			if want := `key provider "bao": ` + c.want; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

// serve opens a provider of a server of the test, which injects a fault.
func serve(t *testing.T, handler http.HandlerFunc) providers.Provider {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	config := &providers.Config{Name: "bao", Type: providers.OpenBao, Endpoints: []string{s.URL}, CacheTime: -time.Second}
	p, err := providers.Types{providers.OpenBao: openbao.Open}.Open(config, providers.Credentials{providers.Token: []byte("the-token")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestTheTokenGoesToNoOtherServer(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server got %s with the token %q", r.URL, r.Header.Get("X-Vault-Token"))
	}))
	defer other.Close()
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	})
	if _, err := p.Key(t.Context(), keys.Name{ID: "a"}); !errors.Is(err, keys.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}

func TestAReplyThatIsNotOfTheAPIIsNotInTheError(t *testing.T) {
	for sentence, reply := range map[string]string{
		"no JSON":         "secret-text",
		"another content": `{"data": {"keys": "secret-text"}}`,
	} {
		t.Run(sentence, func(t *testing.T) {
			p := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, reply) })
			if _, err := p.Key(t.Context(), keys.Name{ID: "a"}); !errors.Is(err, keys.ErrUnusable) || strings.Contains(err.Error(), "secret-text") {
				t.Errorf("got %v, want ErrUnusable", err)
			}
		})
	}
}

func TestAConnectionThatTheServerClosedCostsNoCall(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, `{"data": {"type": "aes256-gcm96", "latest_version": 1, "keys": {"1": 1}}}`)
	})
	for range 3 {
		if _, err := p.Key(t.Context(), keys.Name{ID: "a"}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestARefusedRequestIsNotCopied counts memory: what the client allocates for a refusal and not for a success is a copy that
// nobody overwrites.
func TestARefusedRequestIsNotCopied(t *testing.T) {
	const plaintext = 4 << 20
	refuse := false
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch _, err := io.Copy(io.Discard, r.Body); {
		case err != nil:
			t.Error(err)
		case r.Method == http.MethodGet:
			_, _ = io.WriteString(w, `{"data": {"type": "aes256-gcm96", "latest_version": 1, "keys": {"1": 1}}}`)
		case refuse:
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"errors": ["no room"]}`)
		default:
			_, _ = io.WriteString(w, `{"data": {"ciphertext": "vault:v1:AAAA"}}`)
		}
	})
	key, err := p.Key(t.Context(), keys.Name{ID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	allocated := func() uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, _, _, err := key.Cipher(t.Context()).SealRandom(make([]byte, plaintext), nil); err == nil {
			t.Error("a call whose reply has no ciphertext succeeds")
		} else if refuse != strings.Contains(err.Error(), "no room") {
			t.Error(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	usual := allocated()
	refuse = true
	if refused := allocated(); refused > usual+plaintext/2 {
		t.Errorf("a refused request of %d bytes allocates %d bytes, another one %d", plaintext, refused, usual)
	}
}
