// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// frameSize is the payload of a DATA frame that every server accepts, in bytes.
	frameSize = 16 << 10
	// initialWindow is the default window of HTTP/2, in bytes.
	initialWindow = 65535
	// maxWindow is the largest window of HTTP/2, in bytes.
	maxWindow = 1<<31 - 1
)

// manner is how a client of HTTP/2 misbehaves. The zero value reads all frames, lets the
// server send without limit, and respects the server's windows.
type manner struct {
	// window is how much of each reply the server may send, where limited is set.
	window  uint32
	limited bool
	// stingy clients read all frames, but open no window for more data.
	stingy bool
	// deaf clients do not read the socket at all. So they do not see the server's windows, and send as if the windows were open.
	deaf bool
}

// wire is a connection of HTTP/2 that an attack uses frame by frame.
type wire struct {
	net.Conn
	ctx    context.Context
	target *target
	manner manner
	asleep atomic.Bool // reads no more

	writing sync.Mutex // the rest of this part
	out     *bufio.Writer
	framer  *http2.Framer
	block   bytes.Buffer
	encoder *hpack.Encoder
	next    uint32 // number of the next stream

	mu      sync.Mutex
	changed sync.Cond
	window  int64 // of the connection
	initial int64 // of new streams
	streams map[uint32]int64
	ended   error
}

// connect opens a connection, which lasts until ctx ends. It waits while too many others
// connect.
func connect(ctx context.Context, socket string) (net.Conn, error) {
	for {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "unix", socket)
		if err == nil {
			context.AfterFunc(ctx, func() { _ = conn.Close() }) // it may be closed by now
			return conn, nil
		}
		if !errors.Is(err, syscall.EAGAIN) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// newWire opens a connection and sends HTTP/2's preface and settings.
func newWire(ctx context.Context, t *target, m manner) (*wire, error) {
	conn, err := connect(ctx, t.socket)
	if err != nil {
		return nil, err
	}
	t.tally.count("connections", 1)
	w := &wire{
		Conn: conn, ctx: ctx, target: t, manner: m, out: bufio.NewWriterSize(conn, 64<<10),
		next: 1, window: initialWindow, initial: initialWindow, streams: map[uint32]int64{},
	}
	w.changed.L = &w.mu
	w.framer = http2.NewFramer(w.out, bufio.NewReaderSize(conn, 32<<10))
	w.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	w.framer.AllowIllegalWrites = true
	w.encoder = hpack.NewEncoder(&w.block)
	var settings []http2.Setting
	switch {
	case m.limited:
		settings = append(settings, http2.Setting{ID: http2.SettingInitialWindowSize, Val: m.window})
	case !m.stingy && !m.deaf:
		settings = append(settings, http2.Setting{ID: http2.SettingInitialWindowSize, Val: maxWindow})
	}
	if _, err := io.WriteString(w.out, http2.ClientPreface); err != nil {
		return nil, err
	}
	if err := w.framer.WriteSettings(settings...); err != nil {
		return nil, err
	}
	if !m.stingy && !m.deaf && !m.limited {
		if err := w.framer.WriteWindowUpdate(0, maxWindow-initialWindow); err != nil {
			return nil, err
		}
	}
	if err := w.out.Flush(); err != nil {
		return nil, err
	}
	if !m.deaf {
		go w.read()
	}
	return w, nil
}

// read reads frames until the connection ends.
func (w *wire) read() {
	var received uint32
	for !w.asleep.Load() {
		frame, err := w.framer.ReadFrame()
		if stream := (http2.StreamError{}); errors.As(err, &stream) {
			continue
		}
		if err != nil {
			w.end(err)
			return
		}
		switch frame := frame.(type) {
		case *http2.DataFrame:
			// Only the window of the connection needs updates; windows of streams are large.
			if received += frame.Length; received > 1<<20 && !w.manner.stingy {
				n := received
				received = 0
				_ = w.write(func(f *http2.Framer) error { return f.WriteWindowUpdate(0, n) }) // the next read reports the end of the connection
			}
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				if size, ok := frame.Value(http2.SettingInitialWindowSize); ok {
					w.resize(int64(size))
				}
				_ = w.write(func(f *http2.Framer) error { return f.WriteSettingsAck() })
			}
		case *http2.PingFrame:
			if !frame.IsAck() {
				_ = w.write(func(f *http2.Framer) error { return f.WritePing(true, frame.Data) })
			}
		case *http2.WindowUpdateFrame:
			w.addWindow(frame.StreamID, int64(frame.Increment))
		case *http2.MetaHeadersFrame:
			w.answered(frame)
		case *http2.RSTStreamFrame:
			w.target.tally.count("resets by "+frame.ErrCode.String(), 1)
			w.forget(frame.StreamID)
		case *http2.GoAwayFrame:
			w.target.tally.count("goodbyes by "+frame.ErrCode.String(), 1)
		}
	}
}

// answered counts a call that has ended, by its status.
func (w *wire) answered(frame *http2.MetaHeadersFrame) {
	if !frame.StreamEnded() {
		return
	}
	var code int
	var message string
	for _, field := range frame.Fields {
		switch field.Name {
		case "grpc-status":
			code, _ = strconv.Atoi(field.Value) // a server that sends none is not the broker
		case "grpc-message":
			message = field.Value
		}
	}
	w.target.tally.call(status.Error(codes.Code(code), message))
	w.forget(frame.StreamID)
}

// end wakes all goroutines that wait for a window.
func (w *wire) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended == nil && w.ctx.Err() == nil {
		w.target.tally.count("connections closed by the broker", 1)
	}
	w.ended = err
	w.changed.Broadcast()
}

func (w *wire) resize(initial int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.streams {
		w.streams[id] += initial - w.initial
	}
	w.initial = initial
	w.changed.Broadcast()
}

func (w *wire) addWindow(stream uint32, more int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stream == 0 {
		w.window += more
	} else if _, open := w.streams[stream]; open {
		w.streams[stream] += more
	}
	w.changed.Broadcast()
}

func (w *wire) forget(stream uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.streams, stream)
	w.changed.Broadcast()
}

// errEnded says that the stream or the connection has ended.
var errEnded = errors.New("the stream has ended")

// allowance waits until some of size bytes may be sent.
func (w *wire) allowance(stream uint32, size int) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		left, open := w.streams[stream]
		switch {
		case w.ended != nil:
			return 0, w.ended
		case !open:
			return 0, errEnded
		}
		if w.manner.deaf {
			left = frameSize
			w.window = frameSize
		}
		if n := min(left, w.window, int64(size), frameSize); n > 0 {
			w.streams[stream] = left - n
			w.window -= n
			return int(n), nil
		}
		w.changed.Wait()
	}
}

// write writes frames and sends them.
func (w *wire) write(frames func(*http2.Framer) error) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	if err := frames(w.framer); err != nil {
		return err
	}
	return w.out.Flush()
}

// call opens a stream for a method of gRPC. The fields are added to its headers.
func (w *wire) call(method string, fields ...[2]string) (stream uint32, err error) {
	err = w.write(func(f *http2.Framer) error {
		stream, err = w.headers(f, method, fields...)
		return err
	})
	return stream, err
}

// headers does the same as call, but does not send. It is called in write.
func (w *wire) headers(f *http2.Framer, method string, fields ...[2]string) (uint32, error) {
	block, err := w.fieldBlock(method, fields...)
	if err != nil {
		return 0, err
	}
	stream := w.nextStream()
	for first := true; first || len(block) > 0; first = false {
		n := min(len(block), frameSize)
		part, last := block[:n], n == len(block)
		block = block[n:]
		if first {
			err = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: part, EndHeaders: last})
		} else {
			err = f.WriteContinuation(stream, last, part)
		}
		if err != nil {
			return 0, err
		}
	}
	return stream, nil
}

// fieldBlock encodes the headers of a call. It is called in write.
func (w *wire) fieldBlock(method string, fields ...[2]string) ([]byte, error) {
	w.block.Reset()
	for _, field := range append([][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "localhost"}, {"content-type", "application/grpc"}, {"te", "trailers"},
	}, fields...) {
		if err := w.encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
			return nil, err
		}
	}
	return w.block.Bytes(), nil
}

func (w *wire) nextStream() uint32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	stream := w.next
	w.next += 2
	w.streams[stream] = w.initial
	return stream
}

// send sends a part of a message, and waits until the windows allow it.
func (w *wire) send(stream uint32, data []byte, end bool) error {
	for {
		n := 0
		if len(data) > 0 {
			var err error
			if n, err = w.allowance(stream, len(data)); err != nil {
				return err
			}
		}
		part := data[:n]
		data = data[n:]
		if err := w.write(func(f *http2.Framer) error { return f.WriteData(stream, end && len(data) == 0, part) }); err != nil {
			return err
		}
		if len(data) == 0 {
			return nil
		}
	}
}

// unary makes a call with a message, and does not wait for its reply.
func (w *wire) unary(method string, message []byte, fields ...[2]string) (uint32, error) {
	stream, err := w.call(method, fields...)
	if err != nil {
		return 0, err
	}
	return stream, w.send(stream, framed(message), true)
}

// framed returns a message as gRPC sends it.
func framed(message []byte) []byte { return append(announced(len(message)), message...) }

// announced returns gRPC's prefix of a message of size bytes.
func announced(size int) []byte { return binary.BigEndian.AppendUint32([]byte{0}, uint32(size)) }
