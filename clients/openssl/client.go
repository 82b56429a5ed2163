// SPDX-License-Identifier: Apache-2.0

package openssl

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"
)

// Client makes TLS connections with one configuration. All goroutines of a program share it.
type Client struct {
	config    Config
	protocols []byte
	module    Module
	resources *resources

	handshakeTimeout time.Duration
}

// The limits of net/http's default transport, which cannot apply them to connections that it does not make.
const (
	connectTimeout   = 30 * time.Second
	handshakeTimeout = 10 * time.Second
)

// resources are what a client has in C.
type resources struct {
	mutex    sync.RWMutex
	context  *sslContext // nil after close
	sessions *sessionCache
}

func (r *resources) close() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.context == nil {
		return
	}
	r.sessions.clear()
	r.context.free()
	r.context = nil
}

// New loads OpenSSL, if no other client did, and returns a client. It makes no connection. It returns
// an error for each value that OpenSSL refuses, and [ErrPlatform] where the package cannot load OpenSSL.
func New(config Config) (*Client, error) {
	checked, err := config.check()
	if err != nil {
		return nil, err
	}
	defer clear(checked.key)
	lib, err := loadLibrary(config.Library)
	if err != nil {
		return nil, err
	}
	module := lib.module()
	if config.RequireFIPS && !module.FIPS {
		return nil, fmt.Errorf("openssl: RequireFIPS: %s does not use the FIPS provider by default, expected that openssl.cnf activates it", module.Version)
	}
	context, err := newContext(lib, checked)
	if err != nil {
		return nil, err
	}
	held := &resources{context: context, sessions: newSessionCache(config.SessionCacheSize)}
	// The client does not need the secrets any more.
	config.Certificate, config.PrivateKey = nil, nil
	client := &Client{config: config, protocols: checked.protocols, module: module, resources: held, handshakeTimeout: handshakeTimeout}
	runtime.AddCleanup(client, (*resources).close, held)
	return client, nil
}

// Close frees what the client has in OpenSSL, and makes later connections fail. Open connections stay
// open. A client that the garbage collector finds is closed by it.
func (c *Client) Close() error {
	c.resources.close()
	return nil
}

// Module returns what OpenSSL said about itself when the client was made.
func (c *Client) Module() Module { return c.module }

// NewConn returns a connection over another one, which belongs to it from then on. If
// [Config.ServerName] is empty, the certificate of the peer has to have serverName. Protocols replace
// [Config.NextProtos]. The first Read or Write, or [Conn.HandshakeContext], runs the handshake. The
// connection has to be closed.
func (c *Client) NewConn(raw net.Conn, serverName string, protocols ...string) (*Conn, error) {
	encoded := c.protocols
	if len(protocols) > 0 {
		var err error
		if encoded, err = encodeProtocols(protocols); err != nil {
			return nil, err
		}
	}
	return c.newConn(raw, serverName, encoded)
}

func (c *Client) newConn(raw net.Conn, serverName string, protocols []byte) (*Conn, error) {
	if c.config.ServerName != "" {
		serverName = c.config.ServerName
	}
	serverName, err := parseName(serverName)
	if err != nil {
		return nil, err
	}
	held := c.resources
	held.mutex.RLock()
	defer held.mutex.RUnlock()
	if held.context == nil {
		return nil, errors.New("openssl: the client is closed")
	}
	// Connections with different ALPN protocols do not share sessions, because a resumed session has the protocol of the first
	// connection.
	host := serverName + "\x00" + string(protocols)
	var made *ssl
	var resumed time.Time
	err = held.sessions.with(host, func(resume *session) (err error) {
		if resume != nil {
			resumed = resume.expires
		}
		made, err = newSSL(held.context, serverName, protocols, resume)
		return err
	})
	if err != nil {
		return nil, err
	}
	var keep func(*Conn)
	if c.config.SessionCacheSize > 0 {
		keep = func(conn *Conn) {
			if found := conn.ssl.session(host, &conn.state, resumed); found != nil {
				held.sessions.add(found)
			}
		}
	}
	return newConn(raw, made, serverName, keep), nil
}

// DialTLSContext connects to an address with a port and runs the handshake. It is for the field of the
// same name of an [http.Transport] without a proxy: behind one, net/http uses crypto/tls. The connection
// is closed if the context ends before the handshake. To connect may take 30 seconds and the handshake
// 10.
func (c *Client) DialTLSContext(ctx context.Context, network, address string) (net.Conn, error) {
	return c.dial(ctx, network, address, c.protocols)
}

func (c *Client) dial(ctx context.Context, network, address string, protocols []byte) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("openssl: %w", err)
	}
	dialer := net.Dialer{Timeout: connectTimeout}
	raw, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn, err := c.newConn(raw, host, protocols)
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.handshakeTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// Transport returns a transport for HTTP/1.1 with the limits of [http.DefaultTransport] and the timeouts of
// [Client.DialTLSContext]. It uses no proxy, because behind a proxy net/http uses crypto/tls. If a program sets a proxy, its
// requests by https fail.
func (c *Client) Transport() *http.Transport {
	return c.transport("http/1.1", (*http.Protocols).SetHTTP1)
}

// HTTP2Transport returns a transport for HTTP/2 only. Servers that do not choose it are an error.
func (c *Client) HTTP2Transport() *http.Transport {
	// net/http negotiates HTTP/2 by ALPN only on connections of crypto/tls. So the transport treats this connection as one that is
	// known to speak HTTP/2.
	return c.transport("h2", (*http.Protocols).SetUnencryptedHTTP2)
}

func (c *Client) transport(protocol string, set func(*http.Protocols, bool)) *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	transport.ForceAttemptHTTP2 = false
	transport.Protocols = new(http.Protocols)
	set(transport.Protocols, true)
	// A proxy that somebody sets makes net/http run the handshake by itself.
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS13, VerifyConnection: func(tls.ConnectionState) error {
		return errors.New("openssl: the transport has a proxy, so net/http uses crypto/tls, expected no proxy")
	}}
	encoded := append([]byte{byte(len(protocol))}, protocol...)
	transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := c.dial(ctx, network, address, encoded)
		if err != nil {
			return nil, err
		}
		if chosen := conn.(*Conn).state.NegotiatedProtocol; chosen != protocol && (chosen != "" || protocol == "h2") {
			_ = conn.Close()
			return nil, fmt.Errorf("openssl: the server %s chose the protocol %q, expected %q", address, chosen, protocol)
		}
		return conn, nil
	}
	return transport
}
