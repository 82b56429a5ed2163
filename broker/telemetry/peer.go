// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"net"
	"net/netip"
)

// peer is who is at the other end of a connection.
type peer struct {
	address netip.Addr
	// own is set for a process that shares the broker's network: another container of
	// its pod, or whatever runs on its machine.
	own bool
}

// peerOf reads the addresses of a connection.
func peerOf(conn net.Conn) peer {
	return peerAt(address(conn.RemoteAddr()), address(conn.LocalAddr()))
}

// peerAt is the peer of a connection from remote to local. Nothing else than the own
// network comes from a loopback address or to one, or from the address it goes to.
func peerAt(remote, local netip.Addr) peer {
	return peer{remote, remote.IsLoopback() || local.IsLoopback() || remote == local}
}

// address is that of a TCP address, alike however the system writes it, and the zero
// value for any other.
func address(of net.Addr) netip.Addr {
	tcp, ok := of.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

// limits are how many connections there may be that have something in common,
// narrowest first: whoever is within one is within those after it.
var limits = [...]struct {
	most int
	// common reports whether two connections count towards the same limit.
	common func(a, b peer) bool
}{
	{MaxAddressConnections, func(a, b peer) bool { return a.address == b.address }},
	{MaxOwnConnections, func(a, b peer) bool { return a.own && b.own }},
	{MaxStatusConnections, func(peer, peer) bool { return true }},
}

// longestQuiet looks for the narrowest limit that is reached where one more comes
// from a peer, and chooses the connection within it that has been quiet longest. It
// is nil where none is quiet, because all are being answered.
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
