// SPDX-License-Identifier: Apache-2.0

package tlsprovider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/crypto-broker/crypto-broker-operator/broker/pemtext"
)

// Config is what the connections of a client have in common.
type Config struct {
	// Authorities are the certificates that servers are checked with, as PEM. Without them, the
	// authorities of the system are trusted.
	Authorities []byte
	// Certificate is the certificate of the client with its intermediates, and Key its private key, as
	// PEM. Both are empty if the client has none. The client keeps no reference to the key.
	Certificate, Key []byte
	// ServerName is the name that the certificates of servers have to have. If it is empty, it is the
	// host that is connected to.
	ServerName string
	// MinVersion is the oldest version of TLS, [tls.VersionTLS12] if it is 0.
	MinVersion uint16
	// Sessions is the number of sessions that are kept to resume them, one for each host. With 0,
	// each connection has a full handshake.
	Sessions int
}

// ErrAuthorities is the error of [New] if Authorities has no certificate.
var ErrAuthorities = errors.New("found no certificate, expected PEM with the authorities of the servers")

// Client makes connections with one configuration. It is safe for concurrent use.
type Client struct {
	connector   Connector
	certificate bool
}

// New returns a client. It makes no connection. Its error is [ErrAuthorities], or else says why the
// certificate and the key of the client cannot be used; no error has a part of the key.
func New(config Config) (*Client, error) {
	if config.MinVersion == 0 {
		config.MinVersion = tls.VersionTLS12
	}
	for _, text := range []*[]byte{&config.Authorities, &config.Certificate, &config.Key} {
		*text = pemtext.WithoutMark(*text)
	}
	if len(config.Authorities) > 0 {
		if config.Authorities = certificatesIn(config.Authorities); len(config.Authorities) == 0 {
			return nil, ErrAuthorities
		}
	}
	connector, err := current().New(config)
	if err != nil {
		return nil, err
	}
	return &Client{connector, len(config.Certificate) > 0}, nil
}

// certificatesIn returns the certificates of a text in PEM. It skips what [x509.CertPool.AppendCertsFromPEM] skips, so that all
// implementations trust the same certificates of a file.
func certificatesIn(text []byte) []byte {
	var found []byte
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err == nil {
			found = append(found, pem.EncodeToMemory(block)...)
		}
	}
	return found
}

// HasCertificate reports whether the client has a certificate of its own.
func (c *Client) HasCertificate() bool { return c.certificate }

// Handshake runs the handshake over raw. The returned connection owns raw. After an error raw is closed. serverName is used if the
// configuration has no name.
func (c *Client) Handshake(ctx context.Context, raw net.Conn, serverName string) (net.Conn, error) {
	return handshake(ctx, c.connector, raw, serverName)
}

func handshake(ctx context.Context, connector Connector, raw net.Conn, serverName string) (net.Conn, error) {
	conn, err := connector.Connect(raw, serverName)
	if err != nil {
		_ = raw.Close() // the returned error says more
		return nil, err
	}
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// DialContext connects to an address with a port and runs the handshake, with the host of the address
// as the name of the server.
func (c *Client) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	raw, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return c.Handshake(ctx, raw, host)
}

// Secure makes a transport use the client for all servers. The transport must not have been used. It
// has the proxies of the environment, see [http.ProxyFromEnvironment]. Behind a proxy, and to a proxy,
// net/http always uses crypto/tls, so other implementations refuse both: Secure returns an error if the
// environment has a proxy for the endpoint, and requests to other servers with a proxy fail. Endpoint is
// the URL of the server, or empty if it is not known.
func (c *Client) Secure(transport *http.Transport, endpoint string) error {
	transport.Proxy = http.ProxyFromEnvironment
	if native, ok := c.connector.(*goConnector); ok {
		transport.TLSClientConfig = native.settings.Clone()
	} else {
		transport.Proxy, transport.DialTLSContext = withoutProxy, dialTLS(c.connector, transport.DialContext, transport.TLSHandshakeTimeout)
	}
	if endpoint == "" {
		return nil
	}
	server, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	_, err = transport.Proxy(&http.Request{URL: server})
	return err
}

// withoutProxy is [http.ProxyFromEnvironment], with an error in place of a proxy that needs crypto/tls.
func withoutProxy(request *http.Request) (*url.URL, error) {
	proxy, err := http.ProxyFromEnvironment(request)
	if err == nil && proxy != nil && (request.URL.Scheme == "https" || proxy.Scheme == "https") {
		err = fmt.Errorf("the environment has a proxy for %s, and the TLS provider %s works without one only: set NO_PROXY for this host", request.URL.Host, Current().Provider)
	}
	return proxy, err
}

// dialTLS returns the function that makes connections for a transport. It has its own timeout, because net/http applies its
// handshake timeout only to connections that it makes itself.
func dialTLS(connector Connector, connect func(ctx context.Context, network, address string) (net.Conn, error), timeout time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	if connect == nil {
		connect = new(net.Dialer).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		raw, err := connect(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		return handshake(ctx, connector, raw, host)
	}
}

// Credentials returns credentials for a gRPC client.
func (c *Client) Credentials() credentials.TransportCredentials { return c.connector.Credentials() }

// Refused reports whether an error of a connection says that one side does not accept the certificate of
// the other. With TLS 1.3 a handshake may succeed although the server refuses the client; then the first
// Read has the error.
func Refused(err error) bool {
	if certificate := (*tls.CertificateVerificationError)(nil); errors.As(err, &certificate) {
		return true
	}
	if alert := tls.AlertError(0); errors.As(err, &alert) {
		return slices.Contains(certificateAlerts, alert)
	}
	// crypto/tls has an unexported type for alerts of the other side.
	remote := (*net.OpError)(nil)
	return errors.As(err, &remote) && remote.Op == "remote error" &&
		slices.ContainsFunc(certificateAlerts, func(alert tls.AlertError) bool { return remote.Err.Error() == alert.Error() })
}

// certificateAlerts are the alerts bad_certificate, unsupported_certificate, certificate_revoked,
// certificate_expired, certificate_unknown, unknown_ca, access_denied and certificate_required (RFC 8446,
// section 6.2).
var certificateAlerts = []tls.AlertError{42, 43, 44, 45, 46, 48, 49, 116}
