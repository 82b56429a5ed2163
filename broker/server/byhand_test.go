// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// settings are the settings of a client by hand.
type settings struct {
	// window is how many bytes of a reply the broker may send, unless it is 0.
	window uint32
	// deaf clients do not read.
	deaf bool
}

// handmade is a client that writes HTTP/2 frames itself, and ignores the windows of the server.
type handmade struct {
	t    testing.TB
	conn net.Conn

	writing sync.Mutex
	framer  *http2.Framer
	next    uint32

	mu       sync.Mutex
	window   uint32           // how many bytes of a call the broker allows in advance
	updates  map[uint32]int64 // by stream
	received map[uint32][]byte
	status   map[uint32]string // the code that a call ended with
	pongs    int
	gone     bool
}

func byHand(t testing.TB, socket string, s settings) *handmade {
	t.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	h := &handmade{
		t: t, conn: conn, framer: http2.NewFramer(conn, conn), next: 1,
		updates: map[uint32]int64{}, received: map[uint32][]byte{}, status: map[uint32]string{},
	}
	h.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	var wanted []http2.Setting
	if s.window != 0 {
		wanted = append(wanted, http2.Setting{ID: http2.SettingInitialWindowSize, Val: s.window})
	}
	h.write(func() error { return h.framer.WriteSettings(wanted...) })
	var reading sync.WaitGroup
	if !s.deaf {
		reading.Go(h.read)
	}
	t.Cleanup(func() {
		h.close()
		reading.Wait()
	})
	return h
}

func (h *handmade) close() {
	if err := h.conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		h.t.Error(err)
	}
}

// write writes frames. It ignores errors, because read notices a closed connection.
func (h *handmade) write(frames func() error) {
	h.writing.Lock()
	defer h.writing.Unlock()
	_ = frames()
}

// read reads frames and stores their content.
func (h *handmade) read() {
	for {
		frame, err := h.framer.ReadFrame()
		h.mu.Lock()
		if err != nil {
			h.gone = true
			h.mu.Unlock()
			return
		}
		stream := frame.Header().StreamID
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if value, ok := f.Value(http2.SettingInitialWindowSize); ok {
				h.window = value
			}
		case *http2.WindowUpdateFrame:
			h.updates[stream] += int64(f.Increment)
		case *http2.DataFrame:
			h.received[stream] = append(h.received[stream], f.Data()...)
		case *http2.MetaHeadersFrame:
			for _, field := range f.Fields {
				if field.Name == "grpc-status" {
					h.status[stream] = field.Value
				}
			}
		case *http2.PingFrame:
			h.pongs++
		}
		h.mu.Unlock()
	}
}

// await waits until the condition holds. The condition may read the fields of h.
func (h *handmade) await(what string, so func() bool) {
	h.t.Helper()
	for deadline := time.Now().Add(waitLimit); ; runtime.Gosched() {
		h.mu.Lock()
		done, gone := so(), h.gone
		h.mu.Unlock()
		if done {
			return
		}
		if gone || time.Now().After(deadline) {
			h.t.Fatalf("%s: did not come, and that the connection is closed is %t", what, gone)
		}
	}
}

// ping waits until the broker has read all that was sent before.
func (h *handmade) ping() {
	h.t.Helper()
	if !h.answersPing() {
		h.t.Fatal("an answer to a ping did not come, because the connection is closed")
	}
}

// answersPing does the same. It reports false if the broker closes the connection.
func (h *handmade) answersPing() bool {
	h.t.Helper()
	h.mu.Lock()
	before := h.pongs
	h.mu.Unlock()
	h.write(func() error { return h.framer.WritePing(false, [8]byte{1}) })
	answered := false
	h.await("an answer to a ping", func() bool {
		answered = h.pongs > before
		return answered || h.gone
	})
	return answered
}

// open sends the headers of a call.
func (h *handmade) open(method string, more ...hpack.HeaderField) (stream uint32) {
	h.write(func() error {
		var block bytes.Buffer
		encoder := hpack.NewEncoder(&block)
		encoder.SetMaxDynamicTableSize(0)
		for _, f := range append([]hpack.HeaderField{
			{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: method},
			{Name: ":authority", Value: "localhost"}, {Name: "content-type", Value: "application/grpc"}, {Name: "te", Value: "trailers"},
		}, more...) {
			if err := encoder.WriteField(f); err != nil {
				return err
			}
		}
		stream = h.next
		h.next += 2
		return h.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
	})
	return stream
}

// data sends a part of a call in frames of at most 16 KiB.
func (h *handmade) data(stream uint32, data []byte, last bool) {
	h.write(func() error {
		for {
			n := min(len(data), 16<<10)
			part := data[:n]
			data = data[n:]
			if err := h.framer.WriteData(stream, last && len(data) == 0, part); err != nil || len(data) == 0 {
				return err
			}
		}
	})
}

// call makes a call with one message, which may be the last one. It waits for leave to
// send more than gRPC takes in advance.
func (h *handmade) call(method string, request message, last bool) uint32 {
	h.t.Helper()
	stream := h.open(method)
	h.data(stream, head(len(request)), false)
	if len(request) > 60<<10 {
		h.await("leave to send the message", func() bool { return h.updates[stream] >= int64(len(request)) })
	}
	h.data(stream, request, last)
	return stream
}

// head returns the prefix of a message of this many bytes.
func head(size int) []byte { return binary.BigEndian.AppendUint32([]byte{0}, uint32(size)) }
