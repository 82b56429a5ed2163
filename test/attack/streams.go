// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/encoding/protowire"

	streamv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/stream/v1"
)

// exchangeGivenUp is the number of the field with ids of calls that the client cancels.
const exchangeGivenUp = 2

// manyStreams are opened by the thousand, or have messages with very many parts.
func manyStreams() []attack {
	symbol := encoded(&reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "cryptobroker.v1.CryptoService"},
	})
	tiny := func(id func(i int) uint64) []byte {
		var calls []*streamv1.Call
		for i := range 100_000 {
			calls = append(calls, &streamv1.Call{Id: id(i)})
		}
		return exchanged(calls...)
	}
	return []attack{
		{
			name: "watch-streams", about: "20 connections with 250 streams of Health/Watch each", tested: true,
			run: openStreams(20, nil, methodWatch),
		},
		{
			name: "reflection-streams", about: "20 connections with 250 streams of reflection each, each with a question", tested: true,
			run: openStreams(20, symbol, methodReflection),
		},
		{
			name: "idle-streams", about: "20 connections with 250 streams of operations each that say nothing", tested: true,
			run: openStreams(20, none, methodExchange, methodHashStream, methodSealStream, methodOpenStream),
		},
		{
			name: "reflection-unread", about: "26 connections that read no replies of reflection, and ask for ever",
			run: reflectionUnread(symbol),
		},
		{
			name: "exchange-empty-calls", about: "16 streams with messages of 100,000 calls with nothing in them", tested: true,
			run: exchangeMessages(func() []byte { return tiny(func(i int) uint64 { return uint64(i) }) }),
		},
		{
			name: "exchange-same-id", about: "16 streams with messages of 100,000 calls that have the same id",
			run: exchangeMessages(func() []byte { return tiny(func(int) uint64 { return 7 }) }),
		},
		{
			name: "exchange-tiny-hashes", about: "16 streams with messages of 100,000 hashes of a byte",
			run: exchangeMessages(func() []byte {
				return repeated(exchanged(hashCall(1, 1)), halfSentSize)
			}),
		},
		{
			name: "exchange-given-up", about: "16 streams with messages of 3.9 MB of ids that are given up and that no call has", tested: true,
			run: exchangeMessages(func() []byte {
				return field(nil, exchangeGivenUp, repeated(protowire.AppendVarint(nil, 99), halfSentSize))
			}),
		},
		{
			name: "exchange-unknown-fields", about: "16 streams with messages of 3.9 MB of empty fields that nobody knows",
			run: exchangeMessages(func() []byte { return repeated(emptyField(unknownField), halfSentSize) }),
		},
		{
			name: "hash-stream-tiny", about: "16 streams of HashStream with chunks of one byte for ever",
			run: hashChunks(framed(hashChunk(1))),
		},
		{
			name: "hash-stream-empty", about: "16 streams of HashStream with chunks of no bytes for ever",
			run: hashChunks(framed(hashChunk(0))),
		},
		{
			name: "hash-stream-metadata", about: "10 connections with 90 streams of HashStream each whose start has 1 MiB of metadata, and no chunks", tested: true,
			run: hashStarts(),
		},
	}
}

// none means no message at all. An empty message is something else.
var none = []byte("none")

// openStreams opens 250 streams on each connection, sends a message on each, and holds
// them.
func openStreams(connections int, message []byte, methods ...string) func(context.Context, *target) error {
	return overWires(connections, manner{}, func(w *wire, _ int) error {
		for i := range 250 {
			method := methods[i%len(methods)]
			stream, err := w.call(method)
			if err == nil && string(message) != string(none) {
				err = w.send(stream, framed(message), method == methodWatch)
			}
			w.target.tally.count("streams opened", 1)
			if err != nil {
				return err
			}
		}
		return w.hold()
	})
}

// reflectionUnread asks for descriptions, which are far larger than the request, and opens
// no window for them.
func reflectionUnread(question []byte) func(context.Context, *target) error {
	message := framed(question)
	return overWires(26, manner{limited: true, stingy: true}, func(w *wire, _ int) error {
		w.together(250, func(int) error {
			stream, err := w.call(methodReflection)
			for err == nil {
				err = w.send(stream, message, false)
			}
			return err
		})
		return w.hold()
	})
}

// exchangeMessages sends the same message on streams again and again, and reads the
// replies.
func exchangeMessages(build func() []byte) func(context.Context, *target) error {
	return func(ctx context.Context, t *target) error {
		message := framed(build())
		return overWires(16, manner{}, func(w *wire, _ int) error {
			stream, err := w.call(methodExchange)
			for err == nil {
				if err = w.send(stream, message, false); err == nil {
					t.tally.count("messages sent", 1)
				}
			}
			return err
		})(ctx, t)
	}
}

// hashChunks sends small chunks, many in each frame.
func hashChunks(chunk []byte) func(context.Context, *target) error {
	many := repeated(chunk, frameSize)
	return overWires(16, manner{}, func(w *wire, _ int) error {
		stream, err := w.call(methodHashStream)
		if err == nil {
			err = w.send(stream, framed(hashStart()), false)
		}
		for err == nil {
			if err = w.send(stream, many, false); err == nil {
				w.target.tally.count("frames full of chunks", 1)
			}
		}
		return err
	})
}

// hashStarts opens streams of HashStream and sends nothing more on them.
func hashStarts() func(context.Context, *target) error {
	start := framed(field(nil, 1, field(field(nil, 1, []byte("Default")), 3, repeated(emptyField(unknownField), mebibyte-100))))
	return overWires(10, manner{}, func(w *wire, _ int) error {
		for range 90 {
			stream, err := w.call(methodHashStream)
			if err == nil {
				err = w.send(stream, start, false)
			}
			if err != nil {
				return err
			}
			w.target.tally.count("starts sent", 1)
		}
		return w.hold()
	})
}
