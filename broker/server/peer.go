// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// callerInfo is what gRPC keeps of a connection: who calls.
type callerInfo struct {
	credentials.CommonAuthInfo
	profile.Caller
	conn *callerConn
}

// AuthType implements credentials.AuthInfo.
func (callerInfo) AuthType() string { return "unix" }

// callerCredentials finds out, once a connection, who calls. Nothing is
// encrypted: what passes through the socket never leaves the machine.
type callerCredentials struct{}

// ServerHandshake implements credentials.TransportCredentials.
func (callerCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, ok := raw.(*callerConn)
	if !ok {
		return nil, nil, errors.New("server: the connection did not come in on a caller's socket")
	}
	caller, err := peerOf(conn.UnixConn)
	if err != nil {
		return nil, nil, err
	}
	if err := conn.ready.open(conn.UnixConn); err != nil {
		return nil, nil, err
	}
	if !conn.shared {
		caller.Container = conn.caller.name
	}
	return conn, callerInfo{credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}, caller, conn}, nil
}

// ClientHandshake implements credentials.TransportCredentials.
func (callerCredentials) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("server: these credentials are for servers")
}

// Info implements credentials.TransportCredentials.
func (callerCredentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "unix"}
}

// Clone implements credentials.TransportCredentials.
func (c callerCredentials) Clone() credentials.TransportCredentials { return c }

// OverrideServerName implements credentials.TransportCredentials.
func (callerCredentials) OverrideServerName(string) error { return nil }

// callerOf tells who makes the call. Without an identity, which cannot happen on
// a connection that callerCredentials let in, the caller is in no list.
func callerOf(ctx context.Context) profile.Caller {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(callerInfo); ok {
			return info.Caller
		}
	}
	return profile.Caller{}
}

// connOf is the connection that the call came in on, nil where nobody knows.
func connOf(ctx context.Context) *callerConn {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(callerInfo); ok {
			return info.conn
		}
	}
	return nil
}

// describe names the caller for the message that refuses it by a policy.
func describe(ctx context.Context, policy *profile.CallerPolicy) string {
	var parts []string
	c, conn := callerOf(ctx), connOf(ctx)
	switch {
	case conn != nil && conn.shared && policy.NamesContainers():
		parts = append(parts, "a container that is not known, since those of this broker share their processes and can call for each other (see --shared-identity)")
	case c.Container != "":
		parts = append(parts, fmt.Sprintf("container %q", c.Container))
	case policy.NamesContainers():
		parts = append(parts, "a container that is not known, since this broker has one socket for all (see --callers)")
	}
	if c.Known {
		parts = append(parts, fmt.Sprintf("user %d, group %d", c.UID, c.GID))
	} else {
		parts = append(parts, "a user that is not known")
	}
	return strings.Join(parts, ", ")
}
