// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/regular"
	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
)

// token sends the token of the pod with each request, over TLS only.
type token struct{ file string }

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (t token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	text, err := readFile(t.file, MaxTokenSize)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "cannot read the token of the pod: %v", err)
	}
	found := strings.TrimSpace(string(text))
	if found == "" || strings.ContainsFunc(found, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, status.Errorf(codes.Internal, "%s has no token, expected one in printable ASCII", t.file)
	}
	return map[string]string{TokenHeader: TokenScheme + found}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (token) RequireTransportSecurity() bool { return true }

// maxAuthoritiesSize is the largest file of authorities, in bytes.
const maxAuthoritiesSize = 256 << 10

// transport is TLS with the authorities that are in a file when a connection begins.
type transport struct {
	file, serverName string
	connections      *connections
}

var _ credentials.TransportCredentials = (*transport)(nil)

// ClientHandshake implements credentials.TransportCredentials.
func (t *transport) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	client, err := t.client()
	if err != nil {
		return nil, nil, err
	}
	below := &connection{conn, t.connections}
	encrypted, info, err := client.Credentials().ClientHandshake(ctx, authority, below)
	if err == nil {
		t.connections.open.Store(below)
	}
	return encrypted, info, err
}

// client returns a client for a connection.
func (t *transport) client() (*tlsprovider.Client, error) {
	text, err := readFile(t.file, maxAuthoritiesSize)
	if err != nil {
		return nil, fmt.Errorf("cannot read the authorities of the key gateway: %w", err)
	}
	client, err := tlsprovider.New(tlsprovider.Config{MinVersion: tls.VersionTLS13, Authorities: text, ServerName: t.serverName})
	// Without authorities, a client trusts the authorities of the system.
	if len(text) == 0 || errors.Is(err, tlsprovider.ErrAuthorities) {
		return nil, fmt.Errorf("%s has no certificate, expected PEM with the authorities of the key gateway", t.file)
	}
	return client, err
}

// ServerHandshake implements credentials.TransportCredentials.
func (t *transport) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("gateway: the credentials are for clients")
}

// Info implements credentials.TransportCredentials.
func (t *transport) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements credentials.TransportCredentials.
func (t *transport) Clone() credentials.TransportCredentials {
	copied := *t
	return &copied
}

// OverrideServerName implements credentials.TransportCredentials.
func (t *transport) OverrideServerName(name string) error {
	t.serverName = name
	return nil
}

func readFile(name string, limit int64) ([]byte, error) {
	text, _, err := regular.Read(name, limit)
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return text, err
}
