// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
)

// compressedMessages are small on the wire and large when they are decompressed.
func compressedMessages() []attack {
	flood := func(messages map[string][]byte) func(context.Context, *target) error {
		return overWires(4, manner{}, func(w *wire, _ int) error {
			for {
				for method, message := range messages {
					for range 25 {
						stream, err := w.call(method, [2]string{"grpc-encoding", "gzip"})
						if err == nil {
							err = w.send(stream, message, true)
						}
						if err != nil {
							return err
						}
					}
					if err := w.drain(0); err != nil {
						return err
					}
				}
			}
		})
	}
	large := repeated(emptyField(unknownField), halfSentSize) // compressed, this is smaller than zeros within a field
	return []attack{
		{
			name: "gzip-unary", about: "100 calls at once whose few kB unpack to 3.9 MB", tested: true,
			run: flood(map[string][]byte{methodHash: compressed(large), methodHealth: compressed(large), methodPolicy: compressed(large)}),
		},
		{
			name: "gzip-streams", about: "100 streams of operations with such a message", tested: true,
			run: flood(map[string][]byte{methodExchange: compressed(large), methodHashStream: compressed(large), methodSealStream: compressed(large), methodOpenStream: compressed(large)}),
		},
		{
			name: "gzip-bombs", about: "100 calls and streams at once whose 60 kB unpack to 60 MB",
			run: func(ctx context.Context, t *target) error {
				bomb := compressed(make([]byte, 60<<20))
				return flood(map[string][]byte{methodHash: bomb, methodExchange: bomb})(ctx, t)
			},
		},
	}
}

// compressed is a message as gRPC sends it with grpc-encoding: gzip.
func compressed(message []byte) []byte {
	var packed bytes.Buffer
	writer := must(gzip.NewWriterLevel(&packed, gzip.BestCompression))
	must(writer.Write(message))
	if err := writer.Close(); err != nil {
		panic(err)
	}
	return append(binary.BigEndian.AppendUint32([]byte{1}, uint32(packed.Len())), packed.Bytes()...)
}
