// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strconv"
)

// shortDeadlines pass before the broker can serve the call.
func shortDeadlines() []attack {
	return []attack{
		{
			name: "deadlines-small", about: "eight connections with small hashes whose deadlines are 1 ns to 1 ms away", tested: true,
			run: withShortDeadlines(methodHash, hashMessage(32)),
		},
		{
			name: "deadlines-large", about: "the same with 1 MiB each", tested: true,
			run: withShortDeadlines(methodHash, hashMessage(mebibyte)),
		},
		{
			name: "deadlines-encrypt", about: "the same with replies of 1 MiB",
			run: withShortDeadlines(methodEncrypt, encryptMessage(mebibyte-100)),
		},
		{
			name: "deadlines-exchange", about: "the same with streams of Exchange",
			run: withShortDeadlines(methodExchange, exchanged(encryptCall(1, mebibyte-200))),
		},
	}
}

// withShortDeadlines makes calls with short deadlines, as many as there may be at a time.
func withShortDeadlines(method string, message []byte) func(context.Context, *target) error {
	data := framed(message)
	return overWires(8, manner{}, func(w *wire, _ int) error {
		for i := 1; ; i++ {
			unit := []string{"n", "u", "m"}[i%3]
			amount := strconv.Itoa(1 + i*37%999)
			if unit == "m" {
				amount = "1"
			}
			stream, err := w.call(method, [2]string{"grpc-timeout", amount + unit})
			if err != nil {
				return err
			}
			go func() { _ = w.send(stream, data, true) }() // which ends with the stream
			if err := w.drain(200); err != nil {
				return err
			}
		}
	})
}
