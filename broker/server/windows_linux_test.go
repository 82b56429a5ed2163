// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func TestTheNumberOfAStreamIsFoundInItsContext(t *testing.T) {
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	found := make(chan uint32, 1)
	s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		found <- streamID(stream.Context())
		return nil
	}))
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient("unix://"+listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, want := range []uint32{1, 3, 5} { // those of clients are odd (RFC 9113, section 5.1.1)
		stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/s/m")
		if err != nil {
			t.Fatal(err)
		}
		if got := <-found; got != want {
			t.Errorf("found %d, want %d", got, want)
		}
		if err := stream.RecvMsg(nil); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	if got := streamID(context.Background()); got != 0 {
		t.Errorf("found %d where there is no stream", got)
	}
}

// sent writes frames into one buffer.
func sent(t *testing.T, write ...func(*http2.Framer) error) []byte {
	t.Helper()
	var buffer bytes.Buffer
	framer := http2.NewFramer(&buffer, nil)
	for _, frame := range write {
		if err := frame(framer); err != nil {
			t.Fatal(err)
		}
	}
	return buffer.Bytes()
}

func TestAnUpdateThatWaitsForMemoryGoesOutBetweenTheFramesOfGRPC(t *testing.T) {
	const gated, large = 5, 1 << 20
	window := func(stream, size uint32) func(*http2.Framer) error {
		return func(f *http2.Framer) error { return f.WriteWindowUpdate(stream, size) }
	}
	data := func(size int) func(*http2.Framer) error {
		return func(f *http2.Framer) error { return f.WriteData(1, false, make([]byte, size)) }
	}
	settings := func(f *http2.Framer) error { return f.WriteSettings() }
	before := sent(t, settings, data(20_000), window(0, large), window(gated, 1000), window(7, large))
	after := sent(t, data(100), window(gated, 2000), data(0), data(70))
	waits := sent(t, window(gated, large))
	all := slices.Concat(before, waits, after)

	for _, size := range []int{1, 2, 9, 13, 4096, len(all)} {
		t.Run(fmt.Sprintf("written in parts of %d bytes", size), func(t *testing.T) {
			conn, client := connected(t)
			m := conn.memory
			if !m.arriving.TryAcquire(m.arrivingTotal) {
				t.Fatal("somebody has memory")
			}
			a := &arrivals{conn: conn, stream: gated}
			conn.arrivals = map[uint32]*arrivals{gated: a}
			read := make(chan []byte)
			go func() {
				got := make([]byte, len(all))
				n, _ := io.ReadFull(client, got) // what is missing shows
				read <- got[:n]
			}()
			for part := all; len(part) > 0; part = part[min(size, len(part)):] {
				if n, err := conn.Write(part[:min(size, len(part))]); err != nil || n != min(size, len(part)) {
					t.Fatalf("wrote %d bytes, %v", n, err)
				}
			}
			m.arriving.Release(m.arrivingTotal)
			got := <-read
			if want := slices.Concat(before, after, waits); !bytes.Equal(got, want) {
				t.Errorf("got %d bytes, want the frames of gRPC and then the one that waited, %d bytes", len(got), len(want))
			}
			a.close()
			if !m.arriving.TryAcquire(m.arrivingTotal) {
				t.Error("the stream has ended, and not all memory is given back")
			}
		})
	}
}

func TestAnUpdateGoesOutThoughNoWriteOfGRPCEndsWithAFrame(t *testing.T) {
	conn, client := connected(t)
	frames := sent(t, func(f *http2.Framer) error { return f.WriteData(1, false, make([]byte, 1000)) },
		func(f *http2.Framer) error { return f.WriteData(3, false, make([]byte, 1000)) })
	const cut = 500 // the first write ends within the first frame, the second within the other
	if _, err := conn.Write(frames[:cut]); err != nil {
		t.Fatal(err)
	}
	conn.update(5, 1<<20)
	if _, err := conn.Write(frames[cut : len(frames)-cut]); err != nil {
		t.Fatal(err)
	}
	update := sent(t, func(f *http2.Framer) error { return f.WriteWindowUpdate(5, 1<<20) })
	want := slices.Concat(frames[:len(frames)/2], update, frames[len(frames)/2:len(frames)-cut])
	got := make([]byte, len(want))
	if _, err := io.ReadFull(client, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the update is not between the two frames (%v)", err)
	}
}

func TestAnUpdateOfAStreamThatHasEndedDoesNotGoOut(t *testing.T) {
	conn, client := connected(t)
	m := conn.memory
	if !m.arriving.TryAcquire(m.arrivingTotal) {
		t.Fatal("somebody has memory")
	}
	a := &arrivals{conn: conn, stream: 5}
	conn.arrivals = map[uint32]*arrivals{5: a}
	if _, err := conn.Write(sent(t, func(f *http2.Framer) error { return f.WriteWindowUpdate(5, 1<<20) })); err != nil {
		t.Fatal(err)
	}
	a.close()
	m.arriving.Release(m.arrivingTotal)
	last := sent(t, func(f *http2.Framer) error { return f.WriteSettings() })
	if _, err := conn.Write(last); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(last))
	if _, err := io.ReadFull(client, got); err != nil || !bytes.Equal(got, last) {
		t.Errorf("got %x, %v, want %x alone", got, err, last)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(client); err != nil || len(rest) > 0 {
		t.Errorf("got %x after it, %v", rest, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := m.arriving.Acquire(ctx, m.arrivingTotal); err != nil {
		t.Error("not all memory is given back")
	}
}
