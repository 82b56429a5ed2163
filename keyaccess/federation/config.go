// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
)

// Defaults and limits of a [Config].
const (
	DefaultDepth   = 2
	DefaultTimeout = 5 * time.Second
	DefaultRetry   = 10 * time.Second
	// MaxPeers is the largest number of peers.
	MaxPeers = 64
	// MaxDepth is the largest Depth.
	MaxDepth = 8
	// MaxTimeout is the longest Timeout and the longest Retry.
	MaxTimeout = 5 * time.Minute
)

// Config is a service and its peers.
type Config struct {
	// URL is how clients and peers reach the service: scheme and host, without a slash at the end.
	URL string
	// Keys sign statements: ECDSA on P-256 or P-384, at least one. The first one signs, and all are published.
	Keys []crypto.Signer
	// Peers are the services that this one asks and that may ask it.
	Peers []Peer
	// Depth is the maximum number of services that may have forwarded a request, [DefaultDepth] if it is 0.
	Depth int
	// Retry is the time after which a peer that failed gets a request again, [DefaultRetry] if it is 0.
	Retry time.Duration
	// Now returns the time, [time.Now] if it is nil.
	Now func() time.Time
	Log *slog.Logger
	// Observe is called after each request to a peer with its URL, how the request ended, and the time that it took. It may be nil.
	Observe func(peer string, ended Ending, took time.Duration)
}

// Peer is another service.
type Peer struct {
	caller.Peer
	// Routes are URLs of further services that are asked by way of the peer.
	Routes []string
	// Issuers are the issuers of the tokens of the peer's callers, with the audiences that the peer has. Only they decide who the
	// caller of a forwarded request is, because the peer cannot make tokens. PlainBearer is never accepted.
	Issuers []caller.Issuer
	// Timeout is how long the peer may take, [DefaultTimeout] if it is 0. The deadline of the caller may be shorter.
	Timeout time.Duration
}

// complete checks the configuration and fills in what is 0.
func (c *Config) complete() error {
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Depth = cmp.Or(c.Depth, DefaultDepth)
	c.Retry = cmp.Or(c.Retry, DefaultRetry)
	own, ok := origin(c.URL)
	switch {
	case !ok || own != c.URL:
		return fmt.Errorf("url: found %.200q, expected the URL of the service in normal form, such as https://keys.example.com", c.URL)
	case c.Depth < 1 || c.Depth > MaxDepth:
		return fmt.Errorf("depth: found %d, expected 1 to %d", c.Depth, MaxDepth)
	case c.Retry < time.Second || c.Retry > MaxTimeout:
		return fmt.Errorf("retry: found %s, expected 1s to %s", c.Retry, MaxTimeout)
	case len(c.Peers) > MaxPeers:
		return fmt.Errorf("peers: found %d, expected at most %d", len(c.Peers), MaxPeers)
	case len(c.Keys) == 0:
		return errors.New("keys: found none, expected at least one that signs statements")
	}
	for i, key := range c.Keys {
		if algorithm(key) == "" {
			return fmt.Errorf("keys[%d]: found a key of another kind, expected ECDSA on P-256 or P-384", i)
		}
	}
	c.Peers = slices.Clone(c.Peers)
	seen := map[string]bool{own: true}
	for i := range c.Peers {
		p := &c.Peers[i]
		p.Timeout = cmp.Or(p.Timeout, DefaultTimeout)
		if p.Timeout < 10*time.Millisecond || p.Timeout > MaxTimeout {
			return fmt.Errorf("peers[%d].timeout: found %s, expected 10ms to %s", i, p.Timeout, MaxTimeout)
		}
		if len(p.Issuers) == 0 {
			return fmt.Errorf("peers[%d].issuers: found none, expected the issuers of the peer's callers", i)
		}
		for j, name := range append([]string{p.URL}, p.Routes...) {
			if err := CheckURL(name); err != nil {
				return fmt.Errorf("peers[%d]: %w", i, err)
			}
			if seen[name] {
				return fmt.Errorf("peers[%d]: found the URL %s, which is this service or was found before; expected one way to each service", i, name)
			}
			seen[name] = true
			if j > 0 && c.Depth < 2 {
				return fmt.Errorf("peers[%d].routes: found a route with a depth of 1, expected a depth of at least 2", i)
			}
		}
	}
	return nil
}

// CheckURL returns an error if a text is not the URL of a service in normal form.
func CheckURL(text string) error {
	if found, ok := origin(text); !ok || found != text {
		return fmt.Errorf("found the URL %.200q, expected one in normal form, such as https://keys.example.com", text)
	}
	return nil
}

// algorithm returns the algorithm of the signatures of a key (RFC 7518, section 3.4), or the empty string for a key of another kind.
func algorithm(key crypto.Signer) string {
	public, ok := key.Public().(*ecdsa.PublicKey)
	switch {
	case ok && public.Curve == elliptic.P256():
		return "ES256"
	case ok && public.Curve == elliptic.P384():
		return "ES384"
	}
	return ""
}

// origin returns the service that a URL names: scheme, host and port in normal form. Files of OpenTDF name a service with or
// without the path /kas. It reports whether the text is such a URL.
func origin(text string) (string, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", false
	}
	if path := strings.TrimSuffix(u.Path, "/"); path != "" && path != "/kas" {
		return "", false
	}
	return caller.Origin(u.Scheme, u.Host), true
}
