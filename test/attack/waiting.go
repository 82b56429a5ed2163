// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
)

// Numbers of connections, and of calls that wait on the same connection as a stream.
const (
	fullConnections = 7
	callsBeside     = 254
)

// waitingCalls are many calls that wait for memory that other calls hold.
func waitingCalls() []attack {
	return []attack{
		{
			name: "beside-a-stream-half-sent", about: "seven connections with a stream of Exchange and 254 half-sent calls each", tested: true,
			run: besideAStream(append(announced(mebibyte), make([]byte, 60<<10)...), false),
		},
		{
			name: "beside-a-stream-large", about: "seven connections with a stream of Exchange and 254 calls with 1 MiB each",
			run: besideAStream(framed(hashMessage(mebibyte)), true),
		},
		{
			name: "beside-a-stream-health", about: "seven connections with a stream of Exchange and 254 half-sent Health/Check each",
			run: besideAStream(append(announced(mebibyte), make([]byte, 60<<10)...), false, methodHealth, methodPolicy),
		},
	}
}

// besideAStream opens a stream that keeps a connection in use, and makes calls on the
// connection that send data. When calls end, it makes all of them again at once.
func besideAStream(data []byte, whole bool, methods ...string) func(context.Context, *target) error {
	if methods == nil {
		methods = []string{methodHash, methodEncrypt}
	}
	if whole {
		methods = []string{methodHash}
	}
	return overWires(fullConnections, manner{}, func(w *wire, _ int) error {
		if _, err := w.call(methodExchange); err != nil {
			return err
		}
		for {
			w.together(callsBeside, func(i int) error {
				stream, err := w.call(methods[i%len(methods)])
				if err != nil {
					return err
				}
				return w.send(stream, data, whole)
			})
			if err := w.drain(1); err != nil {
				return err
			}
		}
	})
}
