// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// defaultPort is the port of OTLP over gRPC.
const defaultPort = "4317"

var errEndpoint = errors.New("expected a URL of OTLP over gRPC such as https://collector.observability:4317, without path, user, query and fragment")

// ParseEndpoint returns the host and the port of the URL of a collector, and whether connections to it
// have TLS. The error says what was expected.
func ParseEndpoint(endpoint string) (address string, secured bool, err error) {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return "", false, errEndpoint
	case u.Hostname() == "", strings.Trim(u.Path, "/") != "", strings.HasSuffix(u.Host, ":"):
		return "", false, errEndpoint
	}
	port := u.Port()
	if port == "" {
		port = defaultPort
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", false, errEndpoint
	}
	return net.JoinHostPort(u.Hostname(), port), u.Scheme == "https", nil
}
