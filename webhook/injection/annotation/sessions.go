// SPDX-License-Identifier: Apache-2.0

package annotation

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// twoPorts matches the two ports of a session gateway.
var twoPorts = regexp.MustCompile("^[1-9][0-9]{0,4}:[1-9][0-9]{0,4}$")

// SessionPorts are the port of the session gateway and the port of the application. The broker
// does not have the privilege to open a port below 1024.
var SessionPorts = Values{
	Expected: fmt.Sprintf("two different ports such as 8443:8080, the first from %d to 65535 and the second from 1 to 65535", contract.MinStatusPort),
	Fits: func(text string) bool {
		listen, app, ok := PortsOf(text)
		return ok && listen >= contract.MinStatusPort && listen != app
	},
	CEL: fmt.Sprintf("value.matches('%s') && [value.split(':', 3).map(p, int(p))].all(ports,\nports[0] >= %d && ports[0] <= 65535 && ports[1] <= 65535 && ports[0] != ports[1])",
		twoPorts, contract.MinStatusPort),
}

// PortsOf returns the two ports of a text, and reports whether it has two.
func PortsOf(text string) (listen, app int32, ok bool) {
	if !twoPorts.MatchString(text) {
		return 0, 0, false
	}
	first, second, _ := strings.Cut(text, ":")
	from, err1 := strconv.ParseUint(first, 10, 16)
	to, err2 := strconv.ParseUint(second, 10, 16)
	return int32(from), int32(to), err1 == nil && err2 == nil
}

// ProfileName is the name of one profile. It has no character that is not allowed in lists of
// names.
var ProfileName = Values{
	Expected: fmt.Sprintf("the name of a profile, of at most %d bytes in printable characters, without a comma, a semicolon or a dollar sign", profile.MaxNameLength),
	Fits: func(text string) bool {
		return text != "" && len(text) <= profile.MaxNameLength && printable(text) && !strings.ContainsAny(text, ",;$")
	},
	CEL: fmt.Sprintf("size(bytes(value)) <= %d && value.matches(r'^%s+$') && !value.matches('[,;$]')", profile.MaxNameLength, celPrintable),
}

// maxPlainPaths is the size in bytes of the longest list of paths.
const maxPlainPaths = 2048

// plainPaths are paths in normal form, and ownPaths are the paths that the session gateway serves
// itself.
var (
	plainPaths = regexp.MustCompile("^(/[.]?[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+(,(/[.]?[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+)*$")
	ownPaths   = regexp.MustCompile("(^|,)(" + contract.SessionInitPath + "|" + contract.SessionHealthPath + ")(,|$)")
)

// PlainPaths are lists of paths.
var PlainPaths = Values{
	Expected: fmt.Sprintf("paths such as /healthz,/readyz, at most %d bytes: letters, digits and . _ ~ - between slashes, no spaces, no slash at the end, and not %s or %s, which the session gateway serves itself",
		maxPlainPaths, contract.SessionInitPath, contract.SessionHealthPath),
	Fits: func(text string) bool {
		return len(text) <= maxPlainPaths && plainPaths.MatchString(text) && !ownPaths.MatchString(text)
	},
	CEL: fmt.Sprintf("size(bytes(value)) <= %d && value.matches('%s') && !value.matches('%s')", maxPlainPaths, plainPaths, ownPaths),
}
