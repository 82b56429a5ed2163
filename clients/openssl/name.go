// SPDX-License-Identifier: Apache-2.0

package openssl

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// nameLimit is the length in bytes of the longest DNS name (RFC 1035, section 3.1).
const nameLimit = 253

var dnsName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_][A-Za-z0-9_-]*)*$`)

// parseName returns a DNS name or an IP address as certificates have it: the name without a dot at its end (RFC 6066, section 3),
// the address without a zone, which means nothing to the peer. OpenSSL would accept more names. For OpenSSL a name that begins with
// a dot matches all names below it.
func parseName(name string) (string, error) {
	if address, err := netip.ParseAddr(name); err == nil {
		return address.Unmap().WithZone("").String(), nil
	}
	trimmed := strings.TrimSuffix(name, ".")
	if len(trimmed) > nameLimit || !dnsName.MatchString(trimmed) {
		return "", fmt.Errorf("openssl: ServerName: found %.100q, expected a DNS name in ASCII or an IP address", name)
	}
	return trimmed, nil
}
