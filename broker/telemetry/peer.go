// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"net"
	"net/netip"
)

// peer is the other end of a connection.
type peer struct {
	address netip.Addr
	// own reports whether the peer shares the network of the broker: it is a container of the
	// same pod, or a process of the same machine.
	own bool
}

// peerOf returns the peer of a connection.
func peerOf(conn net.Conn) peer {
	return peerAt(address(conn.RemoteAddr()), address(conn.LocalAddr()))
}

// peerAt returns the peer of a connection from remote to local. The peer shares the network
// of the broker if one address is a loopback address, or if both addresses are equal.
func peerAt(remote, local netip.Addr) peer {
	return peer{remote, remote.IsLoopback() || local.IsLoopback() || remote == local}
}

// address returns the IP address of a TCP address. An IPv4 address is the same in both forms
// that systems use. It returns the zero value for other addresses.
func address(of net.Addr) netip.Addr {
	tcp, ok := of.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

// limits are the limits for groups of connections. Connections that count towards one limit count
// towards all limits after it.
var limits = [...]struct {
	most int
	// common reports whether two connections count towards the same limit.
	common func(a, b peer) bool
}{
	{MaxAddressConnections, func(a, b peer) bool { return a.address == b.address }},
	{maxOwnConnections, func(a, b peer) bool { return a.own && b.own }},
	{MaxStatusConnections, func(peer, peer) bool { return true }},
}

// longestQuiet reports whether one more connection from a peer would exceed a limit. It returns
// the connection under the first such limit that has been idle for the longest time, or nil if
// none is idle.
func longestQuiet(open map[net.Conn]connection, more peer) (quietest net.Conn, full bool) {
	for _, limit := range limits {
		var least connection
		quietest, count := net.Conn(nil), 0
		for conn, c := range open {
			if !limit.common(c.peer, more) {
				continue
			}
			count++
			if !c.answering && (quietest == nil || c.since.Before(least.since)) {
				quietest, least = conn, c
			}
		}
		if count >= limit.most {
			return quietest, true
		}
	}
	return nil, false
}
