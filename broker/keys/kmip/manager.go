// SPDX-License-Identifier: Apache-2.0

package kmip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/ovh/kmip-go"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
)

// Port is the TCP port of KMIP that IANA has registered.
const Port = "5696"

// Config says how to reach a key manager.
type Config struct {
	// Servers are addresses as host or host:port. All serve the same keys. The first server that
	// answers makes new keys.
	Servers []string
	// TLS has the client's certificate and the authorities of the servers. It should keep a TLS
	// session for each server.
	TLS *tlsprovider.Client
	// Pool are the settings of the connections to each server. Endpoints and Dial are not used.
	Pool pool.Config[*Session]
}

// Manager is a key manager. It is safe for concurrent use.
type Manager struct {
	*pool.Pool[*Session]
	client *tlsprovider.Client

	mu sync.Mutex
	// servers has the state of each server, by address.
	servers map[string]server
}

// server is the state of a server.
type server struct {
	version kmip.ProtocolVersion
	traits  *traits
}

var errNoCertificate = errors.New("kmip: found no certificate of the client, expected one: key managers demand it")

// New returns a key manager. It does not wait until a server answers.
func New(config Config) (*Manager, error) {
	if config.TLS == nil || !config.TLS.HasCertificate() {
		return nil, errNoCertificate
	}
	m := &Manager{client: config.TLS, servers: map[string]server{}}
	settings := config.Pool
	settings.Endpoints = make([]string, len(config.Servers))
	for i, server := range config.Servers {
		address, err := Address(server)
		if err != nil {
			return nil, err
		}
		settings.Endpoints[i] = address
	}
	settings.Dial = m.dial
	var err error
	if m.Pool, err = pool.New(settings); err != nil {
		return nil, fmt.Errorf("kmip: %w", err)
	}
	return m, nil
}

// Address returns the address of a server as host:port. The port of KMIP is the default.
func Address(server string) (string, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		host, port, err = net.SplitHostPort(net.JoinHostPort(trimBrackets(server), Port))
	}
	if err != nil || host == "" || port == "" {
		return "", fmt.Errorf("kmip: found the server %q, expected a host, or a host and a port", server)
	}
	return net.JoinHostPort(host, port), nil
}

// trimBrackets removes the brackets of an IPv6 address.
func trimBrackets(host string) string {
	if len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']' {
		return host[1 : len(host)-1]
	}
	return host
}

// dial connects to a server.
func (m *Manager) dial(ctx context.Context, address string) (*Session, error) {
	m.mu.Lock()
	about, known := m.servers[address]
	m.mu.Unlock()
	var remembered *kmip.ProtocolVersion
	if known {
		remembered = &about.version
	}
	s, err := Dial(ctx, address, m.client, remembered)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		delete(m.servers, address) // another server may replace it
		return nil, err
	}
	if about, known = m.servers[address]; known {
		s.traits = about.traits
	}
	m.servers[address] = server{s.version, s.traits}
	return s, nil
}

// CreateTimeout bounds how long a server may take to make a key. It is long because of RSA keys.
const CreateTimeout = time.Minute
