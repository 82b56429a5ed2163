// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/regularfile"
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

// maxAuthoritiesSize and maxCertificateSize are the largest files of authorities and of a
// certificate with its key, in bytes.
const (
	maxAuthoritiesSize = 256 << 10
	maxCertificateSize = 64 << 10
)

// transport is TLS with the authorities and the certificate that are in files when a connection
// begins. certificate is empty if the broker has none.
type transport struct {
	authorities, certificate string
	serverName               string
	connections              *connections
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
	text, err := readFile(t.authorities, maxAuthoritiesSize)
	if err != nil {
		return nil, fmt.Errorf("cannot read the authorities of the key gateway: %w", err)
	}
	config := tlsprovider.Config{MinVersion: tls.VersionTLS13, Authorities: text, ServerName: t.serverName}
	if t.certificate != "" {
		if config.Certificate, config.Key, err = readCertificate(t.certificate); err != nil {
			return nil, err
		}
		defer clear(config.Key)
	}
	client, err := tlsprovider.New(config)
	// Without authorities, a client trusts the authorities of the system.
	if len(text) == 0 || errors.Is(err, tlsprovider.ErrAuthorities) {
		return nil, fmt.Errorf("%s has no certificate, expected PEM with the authorities of the key gateway", t.authorities)
	}
	if err != nil && t.certificate != "" {
		err = fmt.Errorf("cannot use the certificate of the pod in %s: %w", t.certificate, err)
	}
	return client, err
}

// readCertificate returns the certificates and the private key of a file, each in PEM. No error has
// a part of the key.
func readCertificate(file string) (certificates, key []byte, err error) {
	text, err := readFile(file, maxCertificateSize)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the certificate of the pod: %w", err)
	}
	defer clear(text)
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case block.Type == "CERTIFICATE":
			certificates = append(certificates, pem.EncodeToMemory(block)...)
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			encoded := pem.EncodeToMemory(block)
			key = append(key, encoded...)
			clear(encoded)
			clear(block.Bytes)
		}
	}
	if len(certificates) == 0 || len(key) == 0 {
		clear(key)
		return nil, nil, fmt.Errorf("%s has not both a certificate and a private key, expected both in PEM", file)
	}
	return certificates, key, nil
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
	text, _, err := regularfile.Read(name, limit)
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return text, err
}
