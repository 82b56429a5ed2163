// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"golang.org/x/net/http2"

	streamv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/stream/v1"
)

// unreadReplies are attacks of clients that do not read their replies.
func unreadReplies() []attack {
	noWindow := manner{limited: true, stingy: true}
	// The reply repeats the metadata of the request. Its size is just below the size from
	// which the broker counts memory.
	echoed := field(hashMessage(32), hashMetadata, field(nil, unknownField, make([]byte, 15<<10)))
	return []attack{
		{
			name: "unread-no-window", about: "26 connections that leave no window for 250 replies of 15 KiB each", tested: true,
			run: unread(noWindow, 26, 250, methodHash, echoed),
		},
		{
			name: "unread-socket", about: "26 connections that do not read the socket with 250 replies of 15 KiB each", tested: true,
			run: unread(manner{deaf: true}, 26, 250, methodHash, echoed),
		},
		{
			name: "unread-socket-no-window", about: "26 connections that do neither",
			run: unread(manner{deaf: true, limited: true}, 26, 250, methodHash, echoed),
		},
		{
			name: "unread-small", about: "26 connections that leave no window for 250 small hashes each",
			run: unread(noWindow, 26, 250, methodHash, hashMessage(32)),
		},
		{
			name: "unread-failures", about: "26 connections that do not read the socket with 250 calls each that fail",
			run: unread(manner{deaf: true}, 26, 250, methodHash, profileNamed("No such profile")),
		},
		{
			name: "unread-policies", about: "26 connections that leave no window for 250 replies of ListProfiles each",
			run: unread(noWindow, 26, 250, methodPolicy, nil),
		},
		{
			name: "unread-health", about: "26 connections that leave no window for 250 replies of Health/Check each",
			run: unread(noWindow, 26, 250, methodHealth, nil),
		},
		{
			name: "large-no-window", about: "seven connections that leave no window for 64 replies of 1 MiB each", tested: true,
			run: unread(noWindow, 7, 64, methodEncrypt, encryptMessage(mebibyte-100)),
		},
		{
			name: "large-window-1", about: "seven connections that leave a window of one byte for 64 replies of 1 MiB each",
			run: unread(manner{limited: true, window: 1, stingy: true}, 7, 64, methodEncrypt, encryptMessage(mebibyte-100)),
		},
		{
			name: "large-unread-socket", about: "seven connections that open all windows for 64 replies of 1 MiB each and then do not read the socket", tested: true,
			run: largeUnreadSocket(),
		},
		{
			name: "exchange-unread-30", about: "30 streams of Exchange that read no replies, with calls of 1 MiB", tested: true,
			run: exchangeUnread(30, 30),
		},
		{
			name: "exchange-unread-100", about: "100 such streams",
			run: exchangeUnread(100, 100),
		},
		{
			name: "exchange-unread-shared", about: "100 such streams on ten connections", tested: true,
			run: exchangeUnread(10, 100),
		},
	}
}

// unread makes calls on connections of a manner, and keeps these open. It opens a new
// connection for each that ends.
func unread(m manner, connections, calls int, method string, message []byte) func(context.Context, *target) error {
	return overWires(connections, m, func(w *wire, _ int) error {
		w.together(calls, func(int) error {
			_, err := w.unary(method, message)
			if err == nil {
				w.target.tally.count("calls sent", 1)
			}
			return err
		})
		return w.hold()
	})
}

// largeUnreadSocket asks for large replies, lets the broker send all of them at one
// moment, and stops reading.
func largeUnreadSocket() func(context.Context, *target) error {
	message := encryptMessage(mebibyte - 100)
	return overWires(fullConnections, manner{limited: true, stingy: true}, func(w *wire, _ int) error {
		for range 64 {
			go func() {
				_, err := w.unary(methodEncrypt, message)
				w.target.failed(w.ctx, err)
			}()
		}
		pause(w.ctx, time.Second)
		w.asleep.Store(true)
		err := w.write(func(f *http2.Framer) error {
			return errors.Join(f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: maxWindow}), f.WriteWindowUpdate(0, maxWindow-initialWindow))
		})
		if err != nil {
			return err
		}
		return w.hold()
	})
}

// exchangeUnread opens streams of Exchange on connections and sends on each as many calls
// as the broker accepts. It never opens the windows for replies further than HTTP/2's
// default.
func exchangeUnread(connections, streams int) func(context.Context, *target) error {
	return func(ctx context.Context, t *target) error {
		messages := [][]byte{
			framed(exchanged(encryptCall(1, mebibyte-200))),
			framed(exchanged(calls(64, 15<<10)...)),
			framed(exchanged(encryptCall(2, 200<<10), encryptCall(3, 300<<10), encryptCall(4, 400<<10))),
		}
		return overWires(connections, manner{stingy: true}, func(w *wire, _ int) error {
			w.together(streams/connections, func(int) error {
				stream, err := w.call(methodExchange)
				for i := 0; err == nil; i++ {
					if err = w.send(stream, messages[i%len(messages)], false); err == nil {
						t.tally.count("messages sent", 1)
					}
				}
				return err
			})
			return nil
		})(ctx, t)
	}
}

// calls returns many encryptions of so many bytes each.
func calls(n, size int) []*streamv1.Call {
	var all []*streamv1.Call
	for id := range n {
		all = append(all, encryptCall(uint64(1000+id), size))
	}
	return all
}
