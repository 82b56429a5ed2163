// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/callers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
)

// NewInside returns a connection for calls that a part of the broker makes. It stands for all
// clients of that part and has no socket, so it is neither read nor written.
func NewInside(from *Caller, who unixsocket.Identity) *Conn { return newConn(nil, from, who) }

// Inside returns a context with which [PeerOf] returns a connection of [NewInside]. The caller
// is a container with the name of the connection. Its user and group are not known.
func (c *Conn) Inside(ctx context.Context) context.Context {
	caller := callers.Caller{Container: c.Name}
	return peer.NewContext(ctx, &peer.Peer{AuthInfo: authInfo{credentials.CommonAuthInfo{}, caller, c}})
}

// MaxConnections returns how many connections the caller may have at one time.
func (c *Caller) MaxConnections() int64 { return c.connections }
