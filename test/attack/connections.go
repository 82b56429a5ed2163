// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"net"
	"time"

	"golang.org/x/net/http2"
)

// idleConnections is the number of connections that do nothing.
const idleConnections = 5500

// manyConnections opens connections, keeps or closes them, and asks for little or nothing.
func manyConnections() []attack {
	return []attack{
		{
			name: "idle-connections", about: "5,500 connections to the socket that have said hello and nothing else", tested: true,
			run: sendOnce(idleConnections, http2.ClientPreface+emptySettings),
		},
		{
			name: "silent-connections", about: "5,500 connections to the socket that say nothing", tested: true,
			run: sendOnce(idleConnections, ""),
		},
		{
			name: "half-a-preface", about: "5,500 connections to the socket that say half of the preface",
			run: sendOnce(idleConnections, http2.ClientPreface[:12]),
		},
		{
			name: "idle-after-a-call", about: "1,000 connections that have made a call and then do nothing",
			run: overWires(1000, manner{}, func(w *wire, _ int) error {
				if _, err := w.unary(methodHash, hashMessage(32)); err != nil {
					return err
				}
				return w.hold()
			}),
		},
		{
			name: "status-idle", about: "5,500 connections to the status port that say nothing", tested: true,
			run: idleStatus(""),
		},
		{
			name: "status-half-sent", about: "5,500 connections to the status port with half a request each", tested: true,
			run: idleStatus("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Half: "),
		},
		{
			name: "status-kept-alive", about: "5,500 connections to the status port that have asked once and stay",
			run: idleStatus("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		},
		{
			name: "status-metrics-unread", about: "1,000 connections to the status port that ask for the metrics and do not read",
			run: metricsUnread,
		},
		{
			name: "open-and-close", about: "1,000 connections at a time that are opened and closed at once", tested: true,
			run: func(ctx context.Context, t *target) error {
				return persistently(ctx, t, 64, func(ctx context.Context, _ int) error {
					var conns []net.Conn
					for len(conns) < 1000/64 {
						conn, err := connect(ctx, t.socket)
						if err != nil {
							return err
						}
						conns = append(conns, conn)
					}
					t.tally.count("connections", len(conns))
					return nil
				})
			},
		},
		{
			name: "open-call-and-close", about: "64 clients that connect, make a small hash and close, again and again",
			run: func(ctx context.Context, t *target) error {
				return persistently(ctx, t, 64, func(ctx context.Context, _ int) error {
					conn, err := dial(t.socket)
					if err != nil {
						return err
					}
					_ = invoke(ctx, t, conn, methodHash, hashMessage(32)) // the tally counts the error
					return conn.Close()
				})
			},
		},
		{
			name: "many-clients", about: "400 connections with 60 small hashes each at once, which is no abuse", tested: true, polite: true,
			run: manyClients,
		},
	}
}

// emptySettings is the frame that follows the preface.
const emptySettings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// idleStatus does the same as says with the status port.
func idleStatus(hello string) func(context.Context, *target) error {
	return func(ctx context.Context, t *target) error {
		return persistently(ctx, t, idleConnections, func(ctx context.Context, _ int) error {
			conn, err := connectStatus(ctx, t)
			if err != nil {
				return err
			}
			return silent(t, conn, hello)
		})
	}
}

func connectStatus(ctx context.Context, t *target) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", t.status)
	if err == nil {
		context.AfterFunc(ctx, func() { _ = conn.Close() }) // the broker may have closed it
	}
	return conn, err
}

// silent sends bytes once and reads until the broker closes the connection.
func silent(t *target, conn net.Conn, hello string) error {
	t.tally.count("connections", 1)
	if _, err := io.WriteString(conn, hello); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, conn)
	return err
}

func metricsUnread(ctx context.Context, t *target) error {
	return persistently(ctx, t, 1000, func(ctx context.Context, _ int) error {
		conn, err := connectStatus(ctx, t)
		if err != nil {
			return err
		}
		t.tally.count("connections", 1)
		for ctx.Err() == nil {
			if _, err := io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				return err
			}
			pause(ctx, 100*time.Millisecond)
		}
		return nil
	})
}

// manyClients makes many calls of many clients at one moment, and again when all are
// answered.
func manyClients(ctx context.Context, t *target) error {
	const connections, each = 400, 60
	conns, err := clients(ctx, t, connections)
	if err != nil {
		return err
	}
	message := hashMessage(32)
	for ctx.Err() == nil {
		together(ctx, t, connections*each, func(i int) error {
			_ = invoke(ctx, t, conns[i%connections], methodHash, message) // the tally counts the error
			return nil
		})
	}
	return nil
}
