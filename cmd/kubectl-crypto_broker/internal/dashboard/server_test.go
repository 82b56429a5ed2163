// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/fleet"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/rollouts"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

// asked is an action that a server was asked to take.
type asked struct {
	source downgrade.Source
	action rollouts.Action
	seen   rollouts.Seen
}

// started returns a server that runs until the test ends, and a list of what it was asked.
func started(t *testing.T) (*Server, *[]asked) {
	t.Helper()
	all := &[]asked{}
	server, err := Listen(0, func(_ context.Context, source downgrade.Source, action rollouts.Action, seen rollouts.Seen) (string, error) {
		*all = append(*all, asked{source, action, seen})
		if source.Name == "refused" {
			return "", errors.New("the right is missing")
		}
		return "goes on", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return server, all
}

// exchange makes a request like the page. change may change the request.
func exchange(t *testing.T, server *Server, method, path, body string, change func(*http.Request)) (code int, header http.Header, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, server.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Origin", "http://"+r.Host)
		r.Header.Set("Content-Type", "application/json")
	}
	if change != nil {
		change(r)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(answer)
}

const promotion = `{"kind":"CryptoProfile","namespace":"shop","name":"payments","action":"promote","attempt":"9f86d081-1","step":2}`

func TestOnlyThePageOfTheUserIsAnswered(t *testing.T) {
	server, did := started(t)
	tests := map[string]struct {
		method, path, body string
		change             func(*http.Request)
		code               int
	}{
		"the page":              {"GET", "", "", nil, 200},
		"its script":            {"GET", "page.js", "", nil, 200},
		"by the name localhost": {"GET", "", "", func(r *http.Request) { r.Host = "localhost:" + r.URL.Port() }, 200},
		"from the address line": {"GET", "", "", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }, 200},
		"a link of a terminal in a page": {"GET", "", "", func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
		}, 200},
		"a script of another page":         {"GET", "page.js", "", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"a page of another port":           {"GET", "events", "", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, 403},
		"the states for another page":      {"GET", "events", "", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		"another host, by DNS rebinding":   {"GET", "", "", func(r *http.Request) { r.Host = "evil.example:" + r.URL.Port() }, 421},
		"this host with another port":      {"GET", "", "", func(r *http.Request) { r.Host = "127.0.0.1:1" }, 421},
		"this host without a port":         {"GET", "", "", func(r *http.Request) { r.Host = "127.0.0.1" }, 421},
		"no secret":                        {"GET", "", "", func(r *http.Request) { r.URL.Path = "/" }, 404},
		"no secret, and a file":            {"GET", "", "", func(r *http.Request) { r.URL.Path = "/page.js" }, 404},
		"another secret":                   {"GET", "", "", func(r *http.Request) { r.URL.Path = "/" + strings.Repeat("A", 26) + "/" }, 404},
		"a part of the secret":             {"GET", "", "", func(r *http.Request) { r.URL.Path = r.URL.Path[:20] + "/" }, 404},
		"the secret alone":                 {"GET", "", "", func(r *http.Request) { r.URL.Path = strings.TrimSuffix(r.URL.Path, "/") }, 404},
		"a file that there is not":         {"GET", "server.go", "", nil, 404},
		"an action":                        {"POST", "rollouts", promotion, nil, 200},
		"an action without a secret":       {"POST", "rollouts", promotion, func(r *http.Request) { r.URL.Path = "/rollouts" }, 404},
		"an action without an origin":      {"POST", "rollouts", promotion, func(r *http.Request) { r.Header.Del("Origin") }, 403},
		"an action of another page":        {"POST", "rollouts", promotion, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		"an action of another port":        {"POST", "rollouts", promotion, func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }, 403},
		"an action of a page with none":    {"POST", "rollouts", promotion, func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		"an action as a form":              {"POST", "rollouts", promotion, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415},
		"an action by an address":          {"GET", "rollouts", "", nil, 404},
		"an action with something unknown": {"POST", "rollouts", `{"kind":"CryptoProfile","namespace":"shop","name":"payments","to":"all"}`, nil, 400},
		"an action for another kind":       {"POST", "rollouts", `{"kind":"Secret","namespace":"shop","name":"payments","action":"promote"}`, nil, 400},
		"an action for a path":             {"POST", "rollouts", `{"kind":"CryptoProfile","namespace":"shop","name":"../secrets/x","action":"promote"}`, nil, 400},
		"an action for a path above":       {"POST", "rollouts", `{"kind":"CryptoProfile","namespace":"..","name":"x","action":"promote"}`, nil, 400},
		"an action without a namespace":    {"POST", "rollouts", `{"kind":"CryptoProfile","name":"x","action":"promote"}`, nil, 400},
		"an action that is too long":       {"POST", "rollouts", `{"name":"` + strings.Repeat("x", 5000) + `"}`, nil, 400},
		"an action that fails":             {"POST", "rollouts", strings.Replace(promotion, "payments", "refused", 1), nil, 409},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			*did = nil
			code, header, body := exchange(t, server, test.method, test.path, test.body, test.change)
			if code != test.code {
				t.Errorf("found %d, expected %d: %s", code, test.code, body)
			}
			reached := test.method == http.MethodPost && (test.code == 200 || test.code == 409)
			if (len(*did) > 0) != reached {
				t.Errorf("the server did %+v", *did)
			}
			if test.code >= 400 && strings.Contains(body, server.secret) {
				t.Errorf("the secret is in %s", body)
			}
			if cache := header.Get("Cache-Control"); test.code == 200 && cache != "no-store" {
				t.Errorf("Cache-Control is %q", cache)
			}
			for name, want := range map[string]string{
				"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
				"Cross-Origin-Resource-Policy": "same-origin", "Set-Cookie": "", "Access-Control-Allow-Origin": "",
			} {
				if found := header.Get(name); found != want {
					t.Errorf("%s is %q, expected %q", name, found, want)
				}
			}
		})
	}
}

func TestAnActionIsWhatThePageHasShown(t *testing.T) {
	server, did := started(t)
	_, _, body := exchange(t, server, http.MethodPost, "rollouts", promotion, nil)
	want := asked{downgrade.Source{Kind: "CryptoProfile", Namespace: "shop", Name: "payments"}, rollouts.Promote, rollouts.Seen{Attempt: "9f86d081-1", Step: 2}}
	if len(*did) != 1 || (*did)[0] != want || body != `{"says":"The rollout of CryptoProfile \"payments\" goes on."}`+"\n" {
		t.Errorf("found %+v, %s", *did, body)
	}
	_, _, body = exchange(t, server, http.MethodPost, "rollouts", strings.Replace(promotion, "payments", "refused", 1), nil)
	if body != `{"says":"Nothing was done: the right is missing"}`+"\n" {
		t.Errorf("found %s", body)
	}
}

func TestEachServerHasItsOwnSecretAndListensOnLoopback(t *testing.T) {
	one, _ := started(t)
	other, _ := started(t)
	if !regexp.MustCompile(`^http://127\.0\.0\.1:[0-9]+/[A-Z2-7]{26}/$`).MatchString(one.URL()) || one.secret == other.secret {
		t.Errorf("found %s and %s", one.URL(), other.URL())
	}
}

// states returns a function that reads the next state of an open page.
func states(t *testing.T, server *Server) func() *fleet.Fleet {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL()+"events", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	if kind := response.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("found the type %q", kind)
	}
	lines := bufio.NewReader(response.Body)
	return func() *fleet.Fleet {
		t.Helper()
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if data, is := strings.CutPrefix(line, "data: "); is {
				state := &fleet.Fleet{}
				if err := json.Unmarshal([]byte(data), state); err != nil {
					t.Fatal(err)
				}
				return state
			}
		}
	}
}

func TestEachOpenPageGetsTheStateAndItsChanges(t *testing.T) {
	server, _ := started(t)
	publish := func(scope string) {
		if err := server.Publish(&fleet.Fleet{Scope: scope}); err != nil {
			t.Fatal(err)
		}
	}
	early := states(t, server) // before the first state exists
	publish("one\nline")
	late := states(t, server)
	for name, next := range map[string]func() *fleet.Fleet{"early": early, "late": late} {
		if found := next().Scope; found != "one\nline" {
			t.Errorf("%s: found %q", name, found)
		}
	}
	publish("two")
	for name, next := range map[string]func() *fleet.Fleet{"early": early, "late": late} {
		if found := next().Scope; found != "two" {
			t.Errorf("%s: found %q", name, found)
		}
	}
}

func TestOpenPagesAreBounded(t *testing.T) {
	server, _ := started(t)
	for range maxStreams {
		states(t, server)
	}
	if code, _, body := exchange(t, server, http.MethodGet, "events", "", nil); code != http.StatusServiceUnavailable {
		t.Errorf("found %d: %s", code, body)
	}
}

func TestThePageBringsEverythingAndHasNoScriptInItsMarkup(t *testing.T) {
	files, err := fs.Sub(embedded, "page")
	if err != nil {
		t.Fatal(err)
	}
	refused := regexp.MustCompile(`(?i)(<[^>]*\s(on[a-z]+|style)\s*=|<style|<script>|javascript:|@import|\b(inner|outer)html\b|insertadjacenthtml|document\.write|\beval\(|new function|//[a-z0-9.-]+\.[a-z]+/)`)
	err = fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		if found := refused.FindAll(text, -1); len(found) > 0 && string(found[0]) != "//www.w3.org/" {
			t.Errorf("%s has %q", path, found)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
