// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"net/url"
	"strings"
	"unicode"
)

// URI is a pattern of URIs: a URI that may have "*" in three places:
//
//   - as the first label of the host, for one label;
//   - as a whole segment of the path, for one segment of one character or more;
//   - at the end of the path or of an opaque part, for the rest of it, one character or more.
//
// The parts of a URI are compared one by one, so a "*" never matches text of another part.
// User, port, query and fragment have to be equal to the pattern's.
type URI struct {
	scheme, host, port string
	anyHost            DNS
	// user, query and fragment are compared as they are written.
	user, query, fragment string
	opaque                bool
	segments              []string
}

// maxURILength is the longest pattern of a URI, in bytes.
const maxURILength = 1024

// ParseURI returns the pattern in a text. It reports false for more than 1,024 bytes, and for a
// text without a host, a path or an opaque part.
func ParseURI(text string) (URI, bool) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" && parsed.Opaque == "" && parsed.Path == "" || len(text) > maxURILength {
		return URI{}, false
	}
	u, ok := splitURI(text)
	if !ok || strings.Contains(u.user+u.port+u.query+u.fragment, "*") || strings.Contains(u.anyHost.name, "*") {
		return URI{}, false
	}
	for i, segment := range u.segments {
		last := i == len(u.segments)-1
		if star := strings.IndexByte(segment, '*'); star >= 0 && segment != "*" && (!last || star != len(segment)-1) {
			return URI{}, false
		}
	}
	return u, true
}

// ParseWeb returns the pattern in a text. It reports false if the pattern is not for URLs with
// http or https.
func ParseWeb(text string) (URI, bool) {
	u, ok := ParseURI(text)
	return u, ok && (u.scheme == "http" || u.scheme == "https") && (u.host != "" || u.port != "")
}

// splitURI returns the parts of a URI. It reports false for a URI with the segments "." or
// "..", because readers of the certificate could resolve it to a URI that the pattern does
// not allow. It reports false for characters that a URI cannot have, and for a host with a character
// beyond ASCII that is a letter of ASCII in lower case, such as the Kelvin sign: it is another host.
func splitURI(text string) (URI, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"<>\\^`{|}", r) }) {
		return URI{}, false
	}
	if strings.ContainsFunc(u.Host, func(r rune) bool { return r > '~' && unicode.ToLower(r) <= '~' }) {
		return URI{}, false
	}
	p := URI{
		scheme:   u.Scheme,
		host:     strings.ToLower(u.Hostname()),
		port:     u.Port(),
		query:    u.RawQuery,
		fragment: u.EscapedFragment(),
	}
	if u.User != nil {
		p.user = u.User.String() + "@"
	}
	// A URI with an empty query or fragment differs from a URI without it.
	if u.ForceQuery {
		p.query = "?"
	}
	if fragment := strings.IndexByte(text, '#'); fragment >= 0 && u.Fragment == "" {
		p.fragment = "#"
	}
	p.anyHost = splitDNS(p.host)
	path := u.EscapedPath()
	if u.Opaque != "" {
		p.opaque, path = true, u.Opaque
	}
	p.segments = strings.Split(path, "/")
	for _, segment := range p.segments {
		switch plain, err := url.PathUnescape(segment); {
		case err != nil, plain == ".", plain == "..", strings.ContainsAny(plain, "/\\"):
			return URI{}, false
		}
	}
	return p, true
}

// Matches reports whether a URI matches the pattern. A URI with a "*" matches no pattern.
func (p URI) Matches(text string) bool {
	u, ok := splitURI(text)
	return ok && !strings.Contains(text, "*") && p.covers(u)
}

// Covers reports whether every URI that matches the pattern in a text matches this pattern.
func (p URI) Covers(text string) bool {
	u, ok := ParseURI(text)
	return ok && p.covers(u)
}

// covers compares with a URI, or with another pattern. A "*" of the other pattern stands for one
// character or more, so only a "*" of this pattern matches it.
func (p URI) covers(u URI) bool {
	if u.scheme != p.scheme || u.user != p.user || u.port != p.port ||
		u.query != p.query || u.fragment != p.fragment || u.opaque != p.opaque {
		return false
	}
	if p.anyHost.anyLabel {
		if !p.anyHost.Matches(u.host) {
			return false
		}
	} else if u.host != p.host {
		return false
	}
	return matchSegments(p.segments, u.segments)
}

// matchSegments reports whether the segments of a path match. A "*" at the end of the pattern
// matches all that follows.
func matchSegments(pattern, path []string) bool {
	for i, want := range pattern {
		if i >= len(path) {
			return false
		}
		before, rest := strings.CutSuffix(want, "*")
		switch {
		case rest && i == len(pattern)-1:
			return strings.HasPrefix(path[i], before) && len(strings.Join(path[i:], "/")) > len(before)
		case want == "*":
			if path[i] == "" {
				return false
			}
		case want != path[i]:
			return false
		}
	}
	return len(pattern) == len(path)
}
