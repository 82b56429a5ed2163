// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/callers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
)

// authInfo is the value that gRPC stores with each connection: the caller, and the connection
// itself.
type authInfo struct {
	credentials.CommonAuthInfo
	callers.Caller
	conn *Conn
}

// AuthType implements credentials.AuthInfo.
func (authInfo) AuthType() string { return "unix" }

// Credentials identifies the caller once for each connection. It does not encrypt, because the
// data of a Unix socket does not leave the machine.
type Credentials struct{}

// ServerHandshake implements credentials.TransportCredentials.
func (Credentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, ok := raw.(*Conn)
	if !ok {
		return nil, nil, errors.New("server: the connection did not come in on a caller's socket")
	}
	caller, err := unixsocket.PeerOf(conn.UnixConn)
	if err != nil {
		return nil, nil, err
	}
	if err := errors.Join(conn.ready.open(conn.UnixConn), conn.writer.Open(conn.UnixConn)); err != nil {
		return nil, nil, err
	}
	if !conn.Shared {
		caller.Container = conn.Caller.name
	}
	return conn, authInfo{credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}, caller, conn}, nil
}

// ClientHandshake implements credentials.TransportCredentials.
func (Credentials) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("server: these credentials are for servers")
}

// Info implements credentials.TransportCredentials.
func (Credentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "unix"}
}

// Clone implements credentials.TransportCredentials.
func (c Credentials) Clone() credentials.TransportCredentials { return c }

// OverrideServerName implements credentials.TransportCredentials.
func (Credentials) OverrideServerName(string) error { return nil }

// PeerOf returns the caller and the connection of a call. For a context without a connection it
// returns nil and a caller that is in no list of callers.
func PeerOf(ctx context.Context) (callers.Caller, *Conn) {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(authInfo); ok {
			return info.Caller, info.conn
		}
	}
	return callers.Caller{}, nil
}

// CallerOf returns the caller of [PeerOf].
func CallerOf(ctx context.Context) callers.Caller {
	caller, _ := PeerOf(ctx)
	return caller
}

// ConnOf returns the connection of [PeerOf].
func ConnOf(ctx context.Context) *Conn {
	_, conn := PeerOf(ctx)
	return conn
}

// DescribeCaller returns a description of the caller for the error of a policy that refuses
// the call.
func DescribeCaller(ctx context.Context, policy *callers.Policy) string {
	var parts []string
	c, conn := PeerOf(ctx)
	switch {
	case conn != nil && conn.Shared && policy.NamesContainers():
		parts = append(parts, "an unknown container, because the containers of this broker share their processes and can call for each other (see --shared-identity)")
	case c.Container != "":
		parts = append(parts, fmt.Sprintf("container %q", c.Container))
	case policy.NamesContainers():
		parts = append(parts, "an unknown container, because this broker has one socket for all callers (see --callers)")
	}
	if c.Known {
		parts = append(parts, fmt.Sprintf("user %d, group %d", c.UID, c.GID))
	} else {
		parts = append(parts, "an unknown user")
	}
	return strings.Join(parts, ", ")
}
