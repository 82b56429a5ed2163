// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"net/url"
	"strings"
)

// URI is a URI in which "*" stands for
//
//   - one label, as the first label of the host;
//   - one whole segment of the path, of one character or more, or
//   - at the end of the path or of an opaque part, everything that follows, of
//     one character or more.
//
// The parts of a URI are compared one by one and not as one text, so that what
// a "*" stands for never reaches into another part: user, port, query and
// fragment have to be those of the pattern.
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

// ParseURI reads a pattern of at most 1,024 bytes that has a host, a path or an opaque part.
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

// ParseWeb reads a pattern of URLs that can be fetched, by http or https.
func ParseWeb(text string) (URI, bool) {
	u, ok := ParseURI(text)
	return u, ok && (u.scheme == "http" || u.scheme == "https") && (u.host != "" || u.port != "")
}

// splitURI takes a URI apart. It fails on one with segments "." and "..", which
// readers of the certificate would resolve to another place than the pattern's,
// and on one with characters that no URI has.
func splitURI(text string) (URI, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"<>\\^`{|}", r) }) {
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
	// An empty query or fragment is another URI than none.
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

// Matches reports whether a URI is of the pattern. A URI with a "*" is of none.
func (p URI) Matches(text string) bool {
	u, ok := splitURI(text)
	if !ok || strings.Contains(text, "*") || u.scheme != p.scheme || u.user != p.user || u.port != p.port ||
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

// matchSegments compares path segments by segment. A "*" at the very end takes
// all that follows.
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
