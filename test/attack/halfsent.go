// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"golang.org/x/net/http2"
)

// halfSentSize is the size of messages of which a part is never sent, in bytes: nearly the
// largest that gRPC accepts.
const halfSentSize = 3900 << 10

// halfSentCalls announce a message and send only a part of it, or send it slowly or without
// regard to windows.
func halfSentCalls() []attack {
	some := []string{methodHealth, methodPolicy}
	streams := []string{methodExchange, methodHashStream, methodSealStream, methodOpenStream}
	return []attack{
		{
			name: "half-sent-health", about: "40 messages of 3.9 MB to Health/Check without their last byte", tested: true,
			run: halfSent([]string{methodHealth}, 4, 10, halfSentSize-1),
		},
		{
			name: "half-sent-policy", about: "40 messages of 3.9 MB to ListProfiles without their last byte",
			run: halfSent([]string{methodPolicy}, 4, 10, halfSentSize-1),
		},
		{
			name: "half-sent-unary", about: "40 messages of 3.9 MB to all other unary methods without their last byte", tested: true,
			run: halfSent(unaryMethods, 4, 10, halfSentSize-1),
		},
		{
			name: "half-sent-streams", about: "40 messages of 3.9 MB to all streams of operations without their last byte", tested: true,
			run: halfSent(streams, 4, 10, halfSentSize-1),
		},
		{
			name: "half-sent-reflection", about: "40 messages of 3.9 MB to reflection and Health/Watch without their last byte",
			run: halfSent([]string{methodReflection, methodWatch}, 4, 10, halfSentSize-1),
		},
		{
			name: "half-sent-connections", about: "40 messages of 3.9 MB without their last byte, each by a connection of its own",
			run: halfSent(some, 40, 1, halfSentSize-1),
		},
		{
			name: "announced-health", about: "1,000 messages of 3.9 MB to Health/Check and ListProfiles of which nothing is sent", tested: true,
			run: halfSent(some, 4, 250, 0),
		},
		{
			name: "announced-unary", about: "1,000 messages of 3.9 MB to all other unary methods of which nothing is sent", tested: true,
			run: halfSent(unaryMethods, 4, 250, 0),
		},
		{
			name: "announced-streams", about: "1,000 messages of 3.9 MB to all streams of operations of which nothing is sent",
			run: halfSent(streams, 4, 250, 0),
		},
		{
			name: "headers-only", about: "two connections with 400 calls each of which only the headers are sent", tested: true,
			run: overWires(2, manner{}, func(w *wire, _ int) error {
				for i := range 400 {
					if _, err := w.call(unaryMethods[i%len(unaryMethods)]); err != nil {
						return err
					}
				}
				return w.hold()
			}),
		},
		{
			name: "trickle", about: "40 messages of 1 MiB of which a byte comes every 100 ms",
			run: overWires(4, manner{}, trickle),
		},
		{
			name: "beyond-the-window-unary", about: "16 connections that send 3.9 MB to unary methods without windows for them", tested: true,
			run: beyondTheWindow(append(some, unaryMethods...)),
		},
		{
			name: "beyond-the-window-streams", about: "16 connections that send 3.9 MB to streams without windows for them", tested: true,
			run: beyondTheWindow(streams),
		},
	}
}

// halfSent calls the methods in turns on each connection, and sends a number of bytes of
// each message. It opens a new connection for each that ends.
func halfSent(methods []string, connections, calls, sent int) func(context.Context, *target) error {
	return func(ctx context.Context, t *target) error {
		data := append(announced(halfSentSize), make([]byte, sent)...)
		return overWires(connections, manner{}, func(w *wire, i int) error {
			w.together(calls, func(j int) error {
				stream, err := w.call(methods[(i+j)%len(methods)])
				if err == nil {
					err = w.send(stream, data, false)
				}
				if err == nil {
					t.tally.count("messages sent in part", 1)
				}
				return err
			})
			return w.hold()
		})(ctx, t)
	}
}

func trickle(w *wire, _ int) error {
	var open []uint32
	for i := range 10 {
		stream, err := w.call([]string{methodHash, methodExchange}[i%2])
		if err == nil {
			err = w.send(stream, announced(mebibyte), false)
		}
		if err != nil {
			return err
		}
		open = append(open, stream)
	}
	for w.ctx.Err() == nil {
		for _, stream := range open {
			if err := w.send(stream, []byte{0}, false); err != nil {
				return err
			}
		}
		pause(w.ctx, 100*time.Millisecond)
	}
	return nil
}

// beyondTheWindow sends messages as if there were no windows, again and again.
func beyondTheWindow(methods []string) func(context.Context, *target) error {
	return func(ctx context.Context, t *target) error {
		data := append(announced(halfSentSize), make([]byte, halfSentSize)...)
		return overWires(16, manner{}, func(w *wire, i int) error {
			for ; ; i++ {
				stream, err := w.call(methods[i%len(methods)])
				for from := 0; from < len(data) && err == nil; from += frameSize {
					part := data[from:min(len(data), from+frameSize)]
					err = w.write(func(f *http2.Framer) error { return f.WriteData(stream, from+frameSize >= len(data), part) })
				}
				if err != nil {
					return err
				}
			}
		})(ctx, t)
	}
}
