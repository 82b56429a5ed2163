// SPDX-License-Identifier: Apache-2.0

// Package openssl makes the OpenSSL of the system available to package tlsprovider. It is a module
// of its own, because ordinary programs are static and link neither it nor what it needs. "make
// build-openssl" compiles one more file into the broker and the key gateway, which imports it;
// see overlay.json.
package openssl

import (
	"net"
	"strings"

	"google.golang.org/grpc/credentials"

	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
	"github.com/crypto-broker/crypto-broker-operator/clients/openssl/opensslgrpc"
)

func init() { tlsprovider.Register(tlsprovider.OpenSSL, load) }

func load() (tlsprovider.Library, error) {
	_, err := openssl.LoadedModule("")
	return library{}, err
}

// library is the OpenSSL of the system.
type library struct{}

// Module implements tlsprovider.Library.
func (library) Module() tlsprovider.Module {
	module := tlsprovider.Module{Provider: tlsprovider.OpenSSL}
	found, err := openssl.LoadedModule("")
	if err != nil { // cannot fail: load has loaded the library
		module.Version = err.Error()
		return module
	}
	module.Version, module.FIPS = found.Version, found.FIPS
	if found.FIPSProvider {
		module.FIPSModule = strings.TrimSpace(found.FIPSProviderName + " " + found.FIPSProviderVersion)
	}
	return module
}

// New implements tlsprovider.Library.
func (library) New(config tlsprovider.Config) (tlsprovider.Connector, error) {
	client, err := openssl.New(openssl.Config{
		RootCAs: config.Authorities, Certificate: config.Certificate, PrivateKey: config.Key, ServerName: config.ServerName,
		MinVersion: config.MinVersion, SessionCacheSize: config.Sessions,
	})
	if err != nil {
		return nil, err
	}
	return connector{client}, nil
}

type connector struct{ client *openssl.Client }

// Connect implements tlsprovider.Connector.
func (c connector) Connect(raw net.Conn, serverName string) (tlsprovider.Conn, error) {
	return c.client.NewConn(raw, serverName)
}

// Credentials implements tlsprovider.Connector.
func (c connector) Credentials() credentials.TransportCredentials { return opensslgrpc.New(c.client) }
