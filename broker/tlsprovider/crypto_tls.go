// SPDX-License-Identifier: Apache-2.0

package tlsprovider

import (
	"crypto/fips140"
	"crypto/tls"
	"crypto/x509"
	"net"

	"google.golang.org/grpc/credentials"
)

// cryptoTLS is the Library that uses Go's package crypto/tls.
type cryptoTLS struct{}

// Module implements Library.
func (cryptoTLS) Module() Module {
	return Module{Provider: Go, Version: "Go Cryptographic Module " + fips140.Version(), FIPS: fips140.Enabled()}
}

// New implements Library.
func (cryptoTLS) New(config Config) (Connector, error) {
	settings := &tls.Config{MinVersion: config.MinVersion, ServerName: config.ServerName} //nolint:gosec // New sets the version
	if len(config.Authorities) > 0 {
		settings.RootCAs = x509.NewCertPool()
		settings.RootCAs.AppendCertsFromPEM(config.Authorities)
	}
	if len(config.Certificate) > 0 || len(config.Key) > 0 {
		pair, err := tls.X509KeyPair(config.Certificate, config.Key)
		if err != nil {
			return nil, err
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	if config.Sessions > 0 {
		settings.ClientSessionCache = tls.NewLRUClientSessionCache(config.Sessions)
	}
	return &goConnector{settings}, nil
}

type goConnector struct{ settings *tls.Config }

// Connect implements Connector.
func (c *goConnector) Connect(raw net.Conn, serverName string) (Conn, error) {
	settings := c.settings
	if settings.ServerName == "" {
		settings = settings.Clone()
		settings.ServerName = serverName
	}
	return tls.Client(raw, settings), nil
}

// Credentials implements Connector.
func (c *goConnector) Credentials() credentials.TransportCredentials {
	return credentials.NewTLS(c.settings)
}
