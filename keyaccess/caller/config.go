// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/session"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/jws"
)

// Defaults and limits of a [Config].
const (
	DefaultSkew        = 30 * time.Second
	DefaultProofAge    = time.Minute
	DefaultRefreshKeys = 10 * time.Minute
	DefaultKeepKeys    = time.Hour
	// DefaultReplays is enough for 5,000 proofs a second at the default age and skew.
	DefaultReplays = 1 << 20
	// maxSkew is the longest Skew and the longest ProofAge.
	maxSkew = 5 * time.Minute
	// maxToken is the size in bytes of the largest token.
	maxToken = 16 << 10
	// maxProof is the size in bytes of the largest proof.
	maxProof = 8 << 10
)

// Algorithms are the algorithms of signatures of tokens and proofs (RFC 7518, section 3.1, and RFC 8037). RSA keys
// have 2048 to 4096 bits and an exponent of at least 65537 (FIPS 186-5, section 5.4).
var Algorithms = jws.Algorithms

// Config has the settings of a [Verifier].
type Config struct {
	// Issuers are the issuers of tokens, at least one.
	Issuers []Issuer
	// URLs are the URLs under which clients reach the service, such as https://keys.example: scheme and host, and
	// a path if a proxy removes one. A proof has to be for one of them. They are not taken from requests, because
	// the sender of a request chooses its Host header. They may be empty if all issuers have PlainBearer; then
	// all proofs are refused.
	URLs []string
	// Skew is how far the clocks of issuers and callers may differ from ours, [DefaultSkew] if it is 0.
	Skew time.Duration
	// ProofAge is how old a proof may be, [DefaultProofAge] if it is 0.
	ProofAge time.Duration
	// Replays is the maximum number of proofs that are remembered, [DefaultReplays] if it is 0.
	// Each takes up to 90 bytes. One caller may have half of them. While the table is full, calls
	// with proofs are refused.
	Replays int
	// Used is the table of proofs of another verifier of the same service, with the same Skew, ProofAge and Replays.
	// Both verifiers share the table, so that neither accepts a proof that the other one has accepted. The zero value
	// makes a new table.
	Used UsedProofs
	// Now returns the time, [time.Now] if it is nil.
	Now func() time.Time
	// Log gets a line when the keys of an issuer change, and when they cannot be fetched. It may be nil.
	Log *slog.Logger
}

// Issuer is an issuer of tokens.
type Issuer struct {
	// URL is the issuer as its tokens name it, with https. Its discovery document is below it.
	URL string
	// Audiences are names of the service, at least one. A token needs one of them.
	Audiences []string
	// Algorithms are the algorithms of its tokens, [Algorithms] if there are none.
	Algorithms []string
	// RequireTokenType demands the type at+jwt (RFC 9068). Otherwise the type may also be JWT or missing, as it is
	// with many issuers.
	RequireTokenType bool
	// PlainBearer accepts tokens that are bound to no key. Anybody who obtains such a token can
	// use it.
	PlainBearer bool
	// ProofWithBearer accepts a bound token with a valid proof even after the word Bearer. All rules of proofs
	// hold. RFC 9449 demands the word DPoP; the JavaScript client of OpenTDF writes Bearer.
	ProofWithBearer bool
	// ProofWithPath accepts a proof also if it is for the path of the request alone, without scheme and host. RFC 9449
	// demands the URL; the Java and Rust clients of OpenTDF write the path. Such a proof does not say for which service
	// it is.
	ProofWithPath bool
	// Authorities are the certificates that the issuer's server is checked with, as PEM. Without them, the
	// authorities of the system are trusted.
	Authorities []byte
	// LoopbackHTTP accepts an issuer by http at a loopback IP address, such as http://127.0.0.1:8080. It is for
	// tests.
	LoopbackHTTP bool
	// RefreshKeys is the age at which keys are fetched again while they are in use, [DefaultRefreshKeys] if it is 0. A
	// key that the issuer withdraws is accepted for that long.
	RefreshKeys time.Duration
	// KeepKeys is how long keys are used while the issuer cannot be reached, [DefaultKeepKeys] if it is 0. It is at
	// least RefreshKeys. Afterwards calls fail with [Unavailable].
	KeepKeys time.Duration
}

// complete checks the configuration and fills in what is 0. It returns the base URLs in normal form.
func (c *Config) complete() ([]base, error) {
	if len(c.Issuers) == 0 {
		return nil, errors.New("found no issuer, expected at least one")
	}
	for _, limit := range []struct {
		name   string
		value  *time.Duration
		normal time.Duration
	}{{"Skew", &c.Skew, DefaultSkew}, {"ProofAge", &c.ProofAge, DefaultProofAge}} {
		*limit.value = cmp.Or(*limit.value, limit.normal)
		if *limit.value < time.Second || *limit.value > maxSkew {
			return nil, fmt.Errorf("%s is %s, expected a duration from 1s to %s", limit.name, *limit.value, maxSkew)
		}
	}
	c.Replays = cmp.Or(c.Replays, DefaultReplays)
	if c.Replays < 2 {
		return nil, fmt.Errorf("the field Replays is %d, expected at least 2", c.Replays)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Issuers = slices.Clone(c.Issuers)
	bound := false
	for i := range c.Issuers {
		if err := c.Issuers[i].complete(); err != nil {
			return nil, fmt.Errorf("field Issuers[%d]: %w", i, err)
		}
		for _, other := range c.Issuers[:i] {
			if other.URL == c.Issuers[i].URL {
				return nil, fmt.Errorf("field Issuers[%d]: found the URL %.200q a second time", i, other.URL)
			}
		}
		bound = bound || !c.Issuers[i].PlainBearer
	}
	if len(c.URLs) == 0 && bound {
		return nil, errors.New("found no URL of the service, expected at least one: proofs are bound to it")
	}
	bases := make([]base, len(c.URLs))
	for i, text := range c.URLs {
		var err error
		if bases[i], err = parseBase(text); err != nil {
			return nil, fmt.Errorf("URLs[%d] is %.200q, %w", i, text, err)
		}
	}
	return bases, nil
}

func (i *Issuer) complete() error {
	if err := checkIssuerURL(i.URL, i.LoopbackHTTP); err != nil {
		return fmt.Errorf("URL is %.200q, %w", i.URL, err)
	}
	if len(i.Audiences) == 0 || slices.Contains(i.Audiences, "") {
		return errors.New("found no audience or an empty one, expected the names of this service in tokens")
	}
	if len(i.Algorithms) == 0 {
		i.Algorithms = Algorithms
	}
	for _, name := range i.Algorithms {
		if !slices.Contains(Algorithms, name) {
			return fmt.Errorf("found the algorithm %.40q, expected some of %s", name, strings.Join(Algorithms, ", "))
		}
	}
	i.RefreshKeys = cmp.Or(i.RefreshKeys, DefaultRefreshKeys)
	i.KeepKeys = cmp.Or(i.KeepKeys, max(DefaultKeepKeys, i.RefreshKeys))
	if i.RefreshKeys < time.Minute || i.KeepKeys < i.RefreshKeys || i.KeepKeys > 24*time.Hour {
		return fmt.Errorf("RefreshKeys is %s and KeepKeys %s, expected 1m or more, and from RefreshKeys to 24h", i.RefreshKeys, i.KeepKeys)
	}
	return nil
}

// checkIssuerURL returns an error that continues a sentence which begins with the URL.
func checkIssuerURL(text string, loopbackHTTP bool) error {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#") {
		return errors.New("expected a URL such as https://issuer.example, without user, query and fragment")
	}
	return checkScheme(u, loopbackHTTP)
}

// checkScheme accepts https, and http at a loopback IP address if that is allowed. The name localhost is not
// enough: a resolver says what it means.
func checkScheme(u *url.URL, loopbackHTTP bool) error {
	switch {
	case u.Scheme == "https":
		return nil
	case u.Scheme != "http":
		return errors.New("expected https")
	case !loopbackHTTP:
		return errors.New("expected https: whoever can change the keys of the issuer can make tokens")
	}
	if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsLoopback() {
		return errors.New("expected https, or http at a loopback IP address such as 127.0.0.1")
	}
	return nil
}

// base is a URL of the service: its origin in normal form, and the path that comes before the paths of requests.
type base struct{ origin, path string }

// parseBase returns an error that continues a sentence which begins with the URL.
func parseBase(text string) (base, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || strings.ContainsAny(text, "?#") {
		return base{}, errors.New("expected a URL such as https://keys.example, without user, query and fragment")
	}
	b := base{origin: Origin(u.Scheme, u.Host), path: strings.TrimSuffix(u.EscapedPath(), "/")}
	if b.path != "" {
		normal, ok := session.NormalPath(b.path)
		if !ok || normal != b.path {
			return base{}, errors.New("expected a path in normal form (RFC 3986, section 6.2.2)")
		}
	}
	return b, nil
}
