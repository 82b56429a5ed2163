// SPDX-License-Identifier: Apache-2.0

// Package loopback reserves addresses of this machine for servers that tests start, and relays connections to them.
package loopback

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// Reserve returns an address of a host of this machine, such as 127.0.0.1, with a port that no other
// program gets while this one runs: a socket has the port, but does not listen. A server that sets
// SO_REUSEADDR, as package net does, listens there, stops, and listens there again. Until it listens,
// connections are refused.
func Reserve(host string) (address string, err error) {
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.Is4() {
		return "", fmt.Errorf("reserve an address: found the host %q, expected an IPv4 address", host)
	}
	socket, err := open()
	if err != nil {
		return "", os.NewSyscallError("socket", err)
	}
	// The socket stays open until this program ends.
	if err := syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return "", os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: ip.As4()}); err != nil {
		return "", os.NewSyscallError("bind", err)
	}
	name, err := syscall.Getsockname(socket)
	if err != nil {
		return "", os.NewSyscallError("getsockname", err)
	}
	return netip.AddrPortFrom(ip, uint16(name.(*syscall.SockaddrInet4).Port)).String(), nil //nolint:forcetypeassert,gosec // as it was bound
}

// open opens a socket that programs which this one starts do not get.
func open() (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(socket)
	}
	return socket, err
}

// Relay connects each client of a listener with the server at an address, until the listener is closed. A client whose server
// cannot be reached, or has ended, sees that its connection is closed.
func Relay(front net.Listener, to string) {
	for {
		client, err := front.Accept()
		if err != nil {
			return
		}
		go relay(client, to)
	}
}

// relay copies what comes from either side to the other one. The end of either ends both.
func relay(client net.Conn, to string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
		_ = client.Close()
	}()
	_, _ = io.Copy(client, server)
	_ = server.Close()
}
