// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"strings"

	"golang.org/x/net/http2"
)

// brokenFrames send bytes that are no HTTP/2, or frames that are not allowed.
func brokenFrames() []attack {
	return []attack{
		{
			name: "http-1", about: "64 connections to the socket that speak HTTP/1.1",
			run: sendOnce(64, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		},
		{
			name: "wrong-preface", about: "64 connections to the socket that begin with something else", tested: true,
			run: sendOnce(64, strings.Repeat("no preface ", 100)),
		},
		{
			name: "frame-too-large", about: "64 connections with a frame that is said to have 16 MiB",
			run: sendOnce(64, http2.ClientPreface+emptySettings+"\xff\xff\xff\x00\x00\x00\x00\x00\x01"+strings.Repeat("x", frameSize)),
		},
		{
			name: "random-bytes", about: "16 connections with random bytes after the preface", tested: true,
			run: randomBytes,
		},
		{
			name: "wrong-frames", about: "64 connections with frames that may not come: even streams, streams that go down, data of none, broken headers", tested: true,
			run: wrongFrames,
		},
	}
}

// sendOnce opens connections to the socket, sends bytes, and then only reads. When the broker closes a connection, sendOnce opens a new one.
func sendOnce(connections int, hello string) func(context.Context, *target) error {
	return func(ctx context.Context, t *target) error {
		return persistently(ctx, t, connections, func(ctx context.Context, _ int) error {
			conn, err := connect(ctx, t.socket)
			if err != nil {
				return err
			}
			return silent(t, conn, hello)
		})
	}
}

// randomBytes returns bytes that are the same in each run.
func randomBytes(ctx context.Context, t *target) error {
	return persistently(ctx, t, 16, func(ctx context.Context, i int) error {
		source := rand.NewChaCha8([32]byte{byte(i)})
		for ctx.Err() == nil {
			t.failed(ctx, randomConnection(ctx, t, source))
		}
		return nil
	})
}

func randomConnection(ctx context.Context, t *target, source io.Reader) error {
	conn, err := connect(ctx, t.socket)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // the broker may have closed it already
	t.tally.count("connections", 1)
	junk := make([]byte, 4<<10)
	if _, err := io.ReadFull(source, junk); err != nil {
		return err
	}
	if _, err := conn.Write(append([]byte(http2.ClientPreface+emptySettings), junk...)); err != nil {
		return err
	}
	// The broker waits for more if the bytes look like the beginning of a frame.
	if end, ok := conn.(*net.UnixConn); ok {
		if err := end.CloseWrite(); err != nil {
			return err
		}
	}
	_, err = io.Copy(io.Discard, conn)
	return err
}

// wrongFrames sends one wrong frame on each connection.
func wrongFrames(ctx context.Context, t *target) error {
	wrong := []func(w *wire, f *http2.Framer, block []byte) error{
		func(_ *wire, f *http2.Framer, block []byte) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2, BlockFragment: block, EndHeaders: true})
		},
		func(_ *wire, f *http2.Framer, block []byte) error {
			for _, stream := range []uint32{9, 7} {
				if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block, EndHeaders: true}); err != nil {
					return err
				}
			}
			return nil
		},
		func(_ *wire, f *http2.Framer, _ []byte) error { return f.WriteData(0, false, []byte("x")) },
		func(_ *wire, f *http2.Framer, _ []byte) error { return f.WriteData(77, false, []byte("x")) },
		func(_ *wire, f *http2.Framer, _ []byte) error { return f.WriteContinuation(1, true, []byte("x")) },
		func(_ *wire, f *http2.Framer, _ []byte) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0xff, 0xff, 0xff, 0xff, 0xff}, EndHeaders: true})
		},
		func(_ *wire, f *http2.Framer, _ []byte) error { return f.WriteWindowUpdate(0, 0) },
		func(_ *wire, f *http2.Framer, _ []byte) error { return f.WriteWindowUpdate(0, maxWindow) },
		func(_ *wire, f *http2.Framer, _ []byte) error {
			return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31})
		},
		func(_ *wire, f *http2.Framer, _ []byte) error {
			return f.WriteRawFrame(http2.FramePing, 0, 0, []byte("short"))
		},
		func(_ *wire, f *http2.Framer, block []byte) error {
			return f.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, BlockFragment: block, EndHeaders: true})
		},
		func(w *wire, f *http2.Framer, _ []byte) error {
			stream, err := w.headers(f, methodHash)
			if err != nil {
				return err
			}
			return f.WriteData(stream, true, []byte{2, 0xff, 0xff, 0xff, 0xff, 0xff})
		},
	}
	return persistently(ctx, t, 64, func(ctx context.Context, i int) error {
		for ; ctx.Err() == nil; i++ {
			once, cancel := context.WithCancel(ctx)
			w, err := newWire(once, t, manner{})
			if err == nil {
				err = w.write(func(f *http2.Framer) error {
					block, err := w.fieldBlock(methodHash)
					if err != nil {
						return err
					}
					return wrong[i%len(wrong)](w, f, block)
				})
			}
			t.failed(once, err)
			pause(once, pauseAfterFailure)
			cancel()
		}
		return nil
	})
}
