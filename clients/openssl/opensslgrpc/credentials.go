// SPDX-License-Identifier: Apache-2.0

// Package opensslgrpc has credentials for gRPC clients whose TLS comes from OpenSSL.
package opensslgrpc

import (
	"context"
	"errors"
	"fmt"
	"net"

	"google.golang.org/grpc/credentials"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
)

// New returns credentials for [google.golang.org/grpc.WithTransportCredentials]. Connections have the
// security level PrivacyAndIntegrity, so gRPC sends the credentials of calls over them. The peer's
// [credentials.TLSInfo] has what [openssl.Conn.ConnectionState] returns. The field NextProtos of the
// client's configuration is not used; the protocol is always h2.
//
// The credentials are for clients. A handshake of a server is an error.
func New(client *openssl.Client) credentials.TransportCredentials {
	return &transport{client: client}
}

type transport struct {
	client     *openssl.Client
	serverName string
}

// ClientHandshake runs a handshake over a connection, which it closes if the handshake fails.
func (t *transport) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	name := t.serverName
	if name == "" {
		name = authority
		if host, _, err := net.SplitHostPort(authority); err == nil {
			name = host
		}
	}
	conn, err := t.client.NewConn(raw, name, "h2")
	if err != nil {
		_ = raw.Close()
		return nil, nil, err
	}
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	state := conn.ConnectionState()
	if state.NegotiatedProtocol != "h2" {
		_ = conn.Close()
		return nil, nil, fmt.Errorf("opensslgrpc: the server %s chose the protocol %q, expected \"h2\"", name, state.NegotiatedProtocol)
	}
	return conn, credentials.TLSInfo{
		State:          state,
		CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity},
	}, nil
}

// ServerHandshake always returns an error.
func (t *transport) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("opensslgrpc: these credentials are for clients, found a server")
}

// Info returns the description of the protocol for gRPC.
func (t *transport) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls", ServerName: t.serverName} //nolint:staticcheck // the interface still has it
}

// Clone returns a copy with the same client.
func (t *transport) Clone() credentials.TransportCredentials {
	clone := *t
	return &clone
}

// OverrideServerName sets the name that the certificate of the server has to have, unless the
// configuration of the client has one.
//
// Deprecated: use grpc.WithAuthority.
func (t *transport) OverrideServerName(name string) error {
	t.serverName = name
	return nil
}
