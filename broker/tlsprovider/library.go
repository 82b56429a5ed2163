// SPDX-License-Identifier: Apache-2.0

package tlsprovider

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/credentials"
)

// The names of the implementations.
const (
	Go      = "go"      // crypto/tls
	OpenSSL = "openssl" // the OpenSSL of the system
)

// Module describes an implementation: its name, version and FIPS state.
type Module struct {
	// Provider is the name of the implementation.
	Provider string `json:"provider"`
	// Version is the version that the library or the module reports.
	Version string `json:"version"`
	// FIPS reports whether the implementation is in FIPS 140-3 mode.
	FIPS bool `json:"fips"`
	// FIPSModule is the FIPS provider that OpenSSL has loaded, with its version, such as
	// "OpenSSL FIPS Provider 3.1.2". It is empty if there is none, and for crypto/tls, where Version names the module.
	FIPSModule string `json:"fipsModule,omitempty"`
}

// String returns the module as text for messages and logs.
func (m Module) String() string {
	text := m.Version
	if m.FIPSModule != "" {
		text += ", " + m.FIPSModule
	}
	if m.FIPS {
		return text + ", FIPS 140-3 mode on"
	}
	return text + ", FIPS 140-3 mode off"
}

// Library is an implementation of TLS.
type Library interface {
	// Module returns the implementation's name, version and FIPS state.
	Module() Module
	// New returns a Connector for a configuration. It keeps no part of the key.
	New(Config) (Connector, error)
}

// Connector makes connections with one configuration. It is safe for concurrent use.
type Connector interface {
	// Connect returns a TLS connection over an existing connection. The handshake has not begun.
	Connect(raw net.Conn, serverName string) (Conn, error)
	// Credentials returns credentials for a gRPC client.
	Credentials() credentials.TransportCredentials
}

// Conn is a TLS connection.
type Conn interface {
	net.Conn
	HandshakeContext(context.Context) error
	ConnectionState() tls.ConnectionState
}

// used has the implementation that the program uses, and all registered implementations.
var used = struct {
	sync.Mutex
	library   Library
	available map[string]func() (Library, error)
}{
	library:   cryptoTLS{},
	available: map[string]func() (Library, error){Go: func() (Library, error) { return cryptoTLS{}, nil }},
}

// Register makes an implementation available to [Use]. Open loads it. Packages with an
// implementation call it when they are initialized.
func Register(name string, open func() (Library, error)) {
	used.Lock()
	defer used.Unlock()
	used.available[name] = open
}

// Use chooses the implementation for all clients that are made from now on, and loads it. Programs call
// it once, before they make a client; without it, [Go] is used. With requireFIPS, an
// implementation that is not in FIPS 140-3 mode is an error.
func Use(name string, requireFIPS bool) error {
	used.Lock()
	defer used.Unlock()
	open, ok := used.available[name]
	switch {
	case !ok && name == OpenSSL:
		return fmt.Errorf("the TLS provider is %s, but this program was built without it, expected one that was built by make build-openssl", OpenSSL)
	case !ok:
		return fmt.Errorf("the TLS provider is %q, expected one of %s", name, strings.Join(slices.Sorted(maps.Keys(used.available)), ", "))
	}
	library, err := open()
	if err != nil {
		return fmt.Errorf("the TLS provider %s cannot be used: %w", name, err)
	}
	if module := library.Module(); requireFIPS && !module.FIPS {
		return fmt.Errorf("the TLS provider %s has to be in FIPS 140-3 mode, and is not: found %s", name, module)
	}
	used.library = library
	return nil
}

// Current returns the present state of the implementation that the program uses.
func Current() Module { return current().Module() }

func current() Library {
	used.Lock()
	defer used.Unlock()
	return used.library
}
