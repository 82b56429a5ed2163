// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestPathsHaveOneNormalForm(t *testing.T) {
	for path, want := range map[string]string{
		"/":                 "/",
		"/a":                "/a",
		"/a/":               "/a/",
		"/a/./b":            "/a/b",
		"/a/../b":           "/b",
		"/a/b/..":           "/a/",
		"/a/.":              "/a/",
		"/%61":              "/a",
		"/%7euser":          "/~user",
		"/a%3ab":            "/a%3Ab",
		"/%e2%82%ac":        "/%E2%82%AC",
		"/a/%2e%2e/b":       "/b",
		"/a;v=1,2/$&'()*+!": "/a;v=1,2/$&'()*+!",
		"/100%25":           "/100%25",
		"/...":              "/...",
	} {
		if got, ok := NormalPath(path); !ok || got != want {
			t.Errorf("%s: %s, %t, want %s", path, got, ok, want)
		}
		if again, ok := NormalPath(want); !ok || again != want {
			t.Errorf("%s is not in normal form: %s, %t", want, again, ok)
		}
	}
}

func TestPathsThatServersReadDifferentlyAreRefused(t *testing.T) {
	for sentence, path := range map[string]string{
		"none": "", "a relative one": "a/b", "an empty segment": "/a//b", "two slashes in front": "//a", "an escaped slash": "/a%2fb",
		"an escaped backslash": "/a%5cb", "a backslash": `/a\b`, "a query": "/a?b", "a fragment": "/a#b", "a bar": "/a|b", "a space": "/a b",
		"a NUL": "/a%00", "a line break": "/a%0d%0a", "a control character": "/a%7f", "letters beyond ASCII": "/€", "half an escape": "/a%4",
		"no escape": "/a%zz", "a percent sign at the end": "/a%", "above the root": "/../a", "above the root, escaped": "/%2e%2e/a",
		"a URL": "http://a/b", "a long one": "/" + strings.Repeat("a", maxPath),
	} {
		if got, ok := NormalPath(path); ok {
			t.Errorf("%s: %s", sentence, got)
		}
	}
}

func TestAProxyMayWriteThePathInAnotherWay(t *testing.T) {
	s, now := newStore(t)
	p := policy(t, "")
	c := connect(t, s, now, p, "")
	for _, sent := range []string{"/a/../%7Eshop/x", "/~shop/./x", "/~shop/x"} {
		for _, received := range []string{"/~shop/x", "/%7eshop/x"} {
			r := c.requestTo(sent, noon, c.nonce(), "text")
			r.Path = received
			opened, err := s.Open(t.Context(), theOwner, p, &r)
			if err != nil || opened.Path != "/~shop/x" || opened.ClientPath != sent {
				t.Errorf("sent %s, received %s: %+v, %v", sent, received, opened, err)
				continue
			}
			reply, err := s.Seal(t.Context(), theOwner, p, c.id, opened.ClientPath, []byte("paid"))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := c.read(sent, reply); err != nil || got != "paid" {
				t.Errorf("sent %s: the client reads %q, %v", sent, got, err)
			}
		}
	}
}

func TestNoOtherPathIsTakenFromTheAAD(t *testing.T) {
	s, now := newStore(t)
	p := policy(t, "")
	c := connect(t, s, now, p, "")
	for _, sent := range []string{"/a/../admin", "/%61dmin", "/b|/admin", "/admin/", "/ADMIN"} {
		r := c.requestTo(sent, noon, c.nonce(), "text")
		r.Path = "/a"
		if _, err := s.Open(t.Context(), theOwner, p, &r); err != ErrRefused { //nolint:errorlint // it has to be this error and no other
			t.Errorf("sent %s: %v", sent, err)
		}
		r.AAD = base64.StdEncoding.EncodeToString([]byte("POST|/a|" + r.Timestamp + "|" + r.Nonce + "|" + r.Kid))
		if _, err := s.Open(t.Context(), theOwner, p, &r); err != ErrRefused { //nolint:errorlint // it has to be this error and no other
			t.Errorf("sent %s, with the AAD of /a: %v", sent, err)
		}
	}
}
