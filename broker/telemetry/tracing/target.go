// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// tracesPath is the path at which collectors take spans over HTTP.
const tracesPath = "/v1/traces"

// target is the address and the protocol of an exporter.
type target struct {
	protocol string
	// endpoint is the target of gRPC, or a URL.
	endpoint string
	// plain is true for a connection without TLS.
	plain bool
}

// target returns the address and the protocol of an exporter.
func (c *Config) target(exporter string) (target, error) {
	to := c.collector
	set, name, whole := c.endpoint, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", true
	if set == "" {
		set, name, whole = c.generalEndpoint, "OTEL_EXPORTER_OTLP_ENDPOINT", false
	}
	t := target{protocol: to.protocol}
	switch {
	case exporter == exporterGRPC:
		t.protocol = protocolGRPC
	case exporter == exporterHTTP && t.protocol == protocolJSON:
	case exporter == exporterOTLP && t.protocol == "" && set != "" && !strings.Contains(set, "://"):
		t.protocol = protocolGRPC // host:port without a scheme has always meant gRPC
	case exporter == exporterHTTP, t.protocol == "":
		t.protocol = protocolProtobuf
	}
	if set == "" {
		t.plain, t.endpoint = true, "http://localhost:4318"+tracesPath
		if t.protocol == protocolGRPC {
			t.endpoint = "localhost:4317"
		}
	} else {
		u, err := parseEndpoint(set)
		if err != nil {
			return t, err // cannot happen: Set has refused such an endpoint
		}
		if t.protocol == protocolGRPC {
			err = t.overGRPC(u, exporter == exporterGRPC, to.insecure)
		} else {
			err = t.overHTTP(u, whole)
		}
		if err != nil {
			return t, fmt.Errorf("%s is %q, but %w", name, set, err)
		}
	}
	if t.plain && (to.certificate != "" || to.authorities != "" || to.clientCertificate != "" || to.clientKey != "") {
		return t, errors.New("certificates for the collector are set, but its endpoint has no TLS: expected an endpoint that begins with https://")
	}
	return t, nil
}

// overGRPC sets an endpoint that is a URL, host:port or a socket. The scheme of a URL says
// whether there is TLS. For host:port, insecure says it if it is not nil. Otherwise there is TLS,
// unless named is true: then the exporter has the older name otlpgrpc, which means no TLS.
func (t *target) overGRPC(u *url.URL, named bool, insecure *bool) error {
	switch {
	case u.Scheme == "unix":
		t.endpoint, t.plain = "unix://"+u.Path, true
		return nil
	case strings.Trim(u.Path, "/") != "":
		return errors.New("gRPC endpoints have no path: expected a host and a port")
	case u.Scheme == "":
		t.plain = named
		if insecure != nil {
			t.plain = *insecure
		}
	default:
		t.plain = u.Scheme == "http"
	}
	t.endpoint = u.Host
	if u.Port() == "" {
		t.endpoint += ":4317"
	}
	return nil
}

// overHTTP sets an endpoint that is a URL. It adds the path for spans unless whole is true.
func (t *target) overHTTP(u *url.URL, whole bool) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("OTLP over HTTP needs a URL that begins with http:// or https://")
	}
	made := *u
	if !whole && !strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), tracesPath) {
		made.Path = strings.TrimSuffix(u.Path, "/") + tracesPath
	}
	t.endpoint, t.plain = made.String(), u.Scheme == "http"
	return nil
}
