// SPDX-License-Identifier: Apache-2.0

package kmsfile_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/kmsfile"
)

const (
	file = "openbao.yaml"
	// waitLimit is the limit for events that happen within a second.
	waitLimit = 30 * time.Second
)

// place is a directory of files, and the key managers of it.
type place struct {
	*kmsfile.Directory
	dir string
}

func newPlace(t *testing.T) place {
	t.Helper()
	p := place{dir: t.TempDir()}
	p.Directory = kmsfile.New(p.dir)
	t.Cleanup(p.Close)
	return p
}

// write replaces a file as a whole.
func (p place) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(p.dir, name)
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

// key returns a key of the key manager of a file.
func (p place) key(t *testing.T, cached bool) (*keys.Key, error) {
	t.Helper()
	manager, err := p.Provider(file, cached)
	if err != nil {
		return nil, err
	}
	return manager.Key(t.Context(), keys.Name{ID: "app"})
}

// manager replaces a server, because a real server does not count its requests. It has one key, and gives the key to anybody who
// has its token.
type manager struct {
	*httptest.Server
	token    atomic.Pointer[string]
	requests atomic.Int64
}

func newManager(t *testing.T, token string) *manager {
	t.Helper()
	m := &manager{}
	m.token.Store(&token)
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("X-Vault-Token") != *m.token.Load():
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path != "/v1/mykeys/data/app":
			w.WriteHeader(http.StatusNotFound)
		default:
			m.requests.Add(1)
			_, _ = io.WriteString(w, `{"data": {"data": {"key": "000102030405060708090a0b0c0d0e0f"}, "metadata": {"version": 3}}}`)
		}
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *manager) file(token string) string {
	return fmt.Sprintf("# of a released broker\naddress: %s\ntoken: %s\nmount: mykeys\n", m.URL, token)
}

func TestEachCallAsksTheKeyManagerUnlessTheProfileAllowsToKeepKeys(t *testing.T) {
	m, p := newManager(t, "s.first"), newPlace(t)
	p.write(t, file, m.file("s.first"))
	for cached, want := range map[bool]int64{false: 5, true: 1} {
		m.requests.Store(0)
		for range 5 {
			if _, err := p.key(t, cached); err != nil {
				t.Fatal(err)
			}
		}
		if got := m.requests.Load(); got != want {
			t.Errorf("Cache: %t: 5 calls made %d requests, want %d", cached, got, want)
		}
	}
}

func TestAFileThatChangesIsUsedASecondLater(t *testing.T) {
	m, p := newManager(t, "s.first"), newPlace(t)
	until := func(sentence string, want func(error) bool) {
		t.Helper()
		for end := time.Now().Add(waitLimit); ; <-time.After(20 * time.Millisecond) {
			_, err := p.key(t, true)
			if want(err) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %v", sentence, err)
			}
		}
	}
	served := func(err error) bool { return err == nil }
	missing := func(err error) bool { return errors.Is(err, keys.ErrUnusable) && errors.Is(err, os.ErrNotExist) }
	if _, err := p.key(t, true); !missing(err) {
		t.Errorf("without the file: %v", err)
	}
	p.write(t, file, m.file("s.first"))
	until("the file is there", served)
	second := "s.second"
	m.token.Store(&second)
	p.write(t, file, m.file("s.third"))
	until("a token that is not valid", func(err error) bool { return errors.Is(err, keys.ErrDenied) })
	p.write(t, file, m.file(second))
	until("the next token", served)
	if err := os.Remove(filepath.Join(p.dir, file)); err != nil {
		t.Fatal(err)
	}
	until("the file is gone, so that what was read of the key manager is not used", missing)
}

func TestTheFileMayBeALinkAsInAMountedSecret(t *testing.T) {
	m, p := newManager(t, "s.first"), newPlace(t)
	if err := errors.Join(os.Mkdir(filepath.Join(p.dir, "..2026"), 0o700), os.Symlink("..2026", filepath.Join(p.dir, "..data")),
		os.Symlink(filepath.Join("..data", file), filepath.Join(p.dir, file))); err != nil {
		t.Fatal(err)
	}
	p.write(t, filepath.Join("..2026", file), m.file("s.first"))
	if _, err := p.key(t, false); err != nil {
		t.Error(err)
	}
}

func TestAFileThatCannotBeUsedGivesNoKeysAndOneSentence(t *testing.T) {
	const secret = "s.never-in-an-error"
	outside := filepath.Join(t.TempDir(), "outside.yaml")
	if err := os.WriteFile(outside, []byte("address: http://127.0.0.1:1\ntoken: "+secret+"\nmount: m\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for sentence, test := range map[string]struct {
		text, authorities, link string
		want                    string
	}{
		"no map":                    {text: secret, want: "is not a map of text in YAML, expected address, token and mount"},
		"no YAML":                   {text: "token: [" + secret, want: "is not a map of text in YAML, expected address, token and mount"},
		"a list as the token":       {text: "token: [" + secret + "]", want: "is not a map of text in YAML, expected address, token and mount"},
		"an empty file":             {text: "", want: "has no address and no token and no mount, expected address, token and mount"},
		"no mount":                  {text: "address: https://a\ntoken: " + secret, want: "has no mount, expected address, token and mount"},
		"a field of another client": {text: "address: https://a\ntoken: t\nmount: m\n" + secret + ": x", want: "has other fields, expected only address, token and mount"},
		"no URL":                    {text: "address: openbao\nmount: m\ntoken: " + secret, want: `names no server that can be used: Endpoints[0] is "openbao", expected a URL, such as https://openbao.example:8200`},
		"no TLS to another host":    {text: "address: http://openbao.example\nmount: m\ntoken: " + secret, want: "names no server that can be used: Endpoints[0] is \"http://openbao.example\", expected https: without TLS"},
		"a mount elsewhere":         {text: "address: https://a\nmount: ../sys\ntoken: " + secret, want: `names no server that can be used: OpenBao.Mount is "../sys", expected a path`},
		"a token of two lines":      {text: "address: https://a\nmount: m\ntoken: \"" + secret + "\\nx\"", want: `names no server that can be used: found a credential "token" with spaces`},
		"no authority":              {text: "address: https://a\nmount: m\ntoken: " + secret, authorities: secret, want: "names no server that can be used: ca.crt has no certificate"},
		"a large file":              {text: strings.Repeat("#", 64<<10+1), want: file + " has more than 65536 bytes"},
		"a link out of the directory, which a profile cannot follow": {link: outside, want: "path escapes from parent"},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := newPlace(t)
			if test.link != "" {
				if err := os.Symlink(test.link, filepath.Join(p.dir, file)); err != nil {
					t.Fatal(err)
				}
			} else {
				p.write(t, file, test.text)
			}
			if test.authorities != "" {
				p.write(t, "ca.crt", test.authorities)
			}
			_, err := p.key(t, true)
			if !errors.Is(err, keys.ErrUnusable) || !strings.Contains(err.Error(), "the file openbao.yaml of the directory --kms-dir ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the error has a part of the token: %v", err)
			}
		})
	}
}
