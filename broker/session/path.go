// SPDX-License-Identifier: Apache-2.0

package session

import "strings"

// maxPath is the size in bytes of the longest path.
const maxPath = 2048

// NormalPath returns the normal form of a path: escapes of characters that need none are replaced,
// other escapes have upper-case digits, and the segments "." and ".." are removed (RFC 3986, sections
// 6.2.2 and 5.2.4). It reports false for what different servers read differently: characters that a
// path cannot have, escaped slashes, backslashes and control characters, empty segments, and ".." above
// the root. A path has no query.
func NormalPath(path string) (string, bool) {
	if len(path) > maxPath || !strings.HasPrefix(path, "/") {
		return "", false
	}
	decoded, ok := normalEscapes(path)
	if !ok {
		return "", false
	}
	var kept []string
	segments := strings.Split(decoded[1:], "/")
	for i, segment := range segments {
		last := i == len(segments)-1
		switch segment {
		case "":
			if !last {
				return "", false
			}
			kept = append(kept, "")
		case ".", "..":
			if segment == ".." {
				if len(kept) == 0 {
					return "", false
				}
				kept = kept[:len(kept)-1]
			}
			if last {
				kept = append(kept, "") // "/a/." is the folder "/a/"
			}
		default:
			kept = append(kept, segment)
		}
	}
	return "/" + strings.Join(kept, "/"), true
}

// normalEscapes replaces the escapes of a path.
func normalEscapes(path string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c != '%' {
			if !isPathCharacter(c) {
				return "", false
			}
			b.WriteByte(c)
			continue
		}
		if i+2 >= len(path) {
			return "", false
		}
		high, low := hexDigit(path[i+1]), hexDigit(path[i+2])
		if high < 0 || low < 0 {
			return "", false
		}
		i += 2
		switch c = byte(high<<4 | low); {
		case c == '/' || c == '\\' || c < ' ' || c == 0x7f:
			return "", false
		case isUnreserved(c):
			b.WriteByte(c)
		default:
			const digits = "0123456789ABCDEF"
			b.Write([]byte{'%', digits[high], digits[low]})
		}
	}
	return b.String(), true
}

// isUnreserved reports whether a character never needs an escape (RFC 3986, section 2.3).
func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// isPathCharacter reports whether a path has a character without an escape (RFC 3986, section 3.3).
func isPathCharacter(c byte) bool {
	return isUnreserved(c) || strings.IndexByte("/:@!$&'()*+,;=", c) >= 0
}

// hexDigit returns the value of a hexadecimal digit, or -1.
func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
