// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

// arrivingAtOnce is how many messages of a MiB the least memory takes that there is for
// messages of streams.
const arrivingAtOnce = 4

// stall opens a stream of Exchange by hand, announces a message of a MiB and sends its
// first part only. It returns once the rest may be sent.
func stall(t *testing.T, socket string) net.Conn {
	t.Helper()
	conn, framer := byHand(t, socket)
	if err := framer.WriteData(1, false, append([]byte{0, 0, 0x10, 0, 0}, make([]byte, 1000)...)); err != nil {
		t.Fatal(err)
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if update, ok := frame.(*http2.WindowUpdateFrame); ok && update.StreamID == 1 && update.Increment >= 1<<20 {
			return conn
		}
	}
}

// byHand opens a stream of Exchange, the first of a connection, without gRPC.
func byHand(t *testing.T, socket string) (net.Conn, *http2.Framer) {
	t.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the test may have done that
	var headers bytes.Buffer
	encoder := hpack.NewEncoder(&headers)
	for _, field := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", methodExchange}, {":authority", "localhost"}, {"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		if err := encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	for _, err := range []error{
		framer.WriteSettings(),
		framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers.Bytes(), EndHeaders: true}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return conn, framer
}

// largeHashCall has a message of a MiB, or a little less.
func largeHashCall(id uint64) message { return hashCall(id, "Hash", strings.Repeat("x", 1<<20-100)) }

func TestALargeMessageOfAStreamWaitsUntilOthersHaveArrived(t *testing.T) {
	b := startWith(t, cipherProfiles, nil, server.WithMemory(oneAtATime))
	var stalled []net.Conn
	for range arrivingAtOnce {
		stalled = append(stalled, stall(t, b.socket("")))
	}
	conn := connect(t, b.socket(""))
	large := exchange(t, conn)
	replied := make(chan error, 1)
	go func() {
		_, a, err := large.next()
		if err == nil && a.code() != codes.OK {
			err = status.Error(a.code(), "refused")
		}
		replied <- err
	}()
	large.send(largeHashCall(1))
	// Small ones of the same connection go on.
	small := exchange(t, conn)
	for id := range uint64(10) {
		small.send(hashCall(id, "Hash", "small"))
		if _, a, err := small.next(); err != nil || a.code() != codes.OK {
			t.Fatalf("got %v, %v", a, err)
		}
	}
	select {
	case err := <-replied:
		t.Fatalf("the large message did not wait: %v", err)
	default:
	}
	if err := stalled[0].Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-replied; err != nil {
		t.Error(err)
	}
	large.closeSend()
	small.closeSend()
}

func TestAClientThatDoesNotSendTheRestOfAMessageLosesItsConnection(t *testing.T) {
	b := startWith(t, cipherProfiles, nil, server.WithMemory(oneAtATime), server.WithIdleTime(2*time.Second))
	for range arrivingAtOnce {
		stall(t, b.socket(""))
	}
	stream := exchange(t, connect(t, b.socket("")))
	stream.send(largeHashCall(1))
	if _, a, err := stream.next(); err != nil || a.code() != codes.OK {
		t.Errorf("got %v, %v", a, err)
	}
	stream.closeSend()
}

// Were anything not given back, there would be no room for the last messages.
func TestAllMemoryForMessagesIsGivenBackHoweverStreamsEnd(t *testing.T) {
	b := startWith(t, cipherProfiles, nil, server.WithMemory(oneAtATime))
	var all sync.WaitGroup
	for i := range 64 {
		conn := connect(t, b.socket(""))
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
			defer cancel()
			stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, methodExchange, grpc.ForceCodecV2(wire{}))
			for err == nil { // until the time is over
				err = stream.SendMsg([]byte(largeHashCall(uint64(i))))
			}
		})
	}
	all.Wait()
	conn := connect(t, b.socket(""))
	for range 2 * arrivingAtOnce {
		stream := exchange(t, conn)
		defer stream.closeSend()
		stream.send(batch(largeHashCall(1), largeHashCall(2), largeHashCall(3))) // 3 MiB in one message
		for range 3 {
			if _, a, err := stream.next(); err != nil || a.code() != codes.OK {
				t.Fatalf("got %v, %v", a, err)
			}
		}
	}
}

// sendsWithoutAWindow sends a message that is more than the window, whether there is room
// for it or not, and tells whether the broker closes the connection for that.
func sendsWithoutAWindow(t *testing.T, socket string) (closed bool) {
	t.Helper()
	conn, framer := byHand(t, socket)
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	text := batch(hashCall(1, "Hash", strings.Repeat("x", 100<<10)))
	wire := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text))), text...)
	write := func(data []byte) bool {
		return framer.WriteData(1, false, data) == nil && framer.WritePing(false, [8]byte{}) == nil
	}
	if !write(wire[:1000]) {
		return true
	}
	for rest := wire[1000:]; ; {
		frame, err := framer.ReadFrame()
		if err != nil {
			return !errors.Is(err, os.ErrDeadlineExceeded)
		}
		switch frame := frame.(type) {
		case *http2.RSTStreamFrame:
			return false
		case *http2.PingFrame: // what was sent before it has been read
			if !frame.IsAck() || len(rest) == 0 {
				continue
			}
			n := min(16<<10, len(rest))
			if !write(rest[:n]) {
				return true
			}
			rest = rest[n:]
		}
	}
}

func TestAClientThatSendsWithoutAWindowLosesItsConnection(t *testing.T) {
	b := startWith(t, cipherProfiles, nil, server.WithMemory(oneAtATime))
	var stalled []net.Conn
	for range arrivingAtOnce {
		stalled = append(stalled, stall(t, b.socket("")))
	}
	// gRPC by itself resets the stream where a client is faster than the stream's reader.
	for deadline := time.Now().Add(waitLimit); !sendsWithoutAWindow(t, b.socket("")); {
		if time.Now().After(deadline) {
			t.Fatal("the broker keeps the connection")
		}
	}
	// What it wanted is for others, once the first have gone.
	for _, conn := range stalled {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	stream := exchange(t, connect(t, b.socket("")))
	for id := range uint64(2 * arrivingAtOnce) {
		stream.send(largeHashCall(id))
		if _, a, err := stream.next(); err != nil || a.code() != codes.OK {
			t.Fatalf("got %v, %v", a, err)
		}
	}
	stream.closeSend()
}

func TestAChunkThatTheBrokerHoldsBackIsNotOneThatDidNotCome(t *testing.T) {
	b := startWith(t, cipherProfiles, nil, server.WithMemory(oneAtATime), server.WithIdleTime(2*time.Second))
	for range arrivingAtOnce {
		stall(t, b.socket("")) // which lose their connections after more than the idle time
	}
	_, err := hashStream(t, connect(t, b.socket("")), startOf(message{}.text(requestProfile, "Hash")), chunk(strings.Repeat("x", 1<<20)))
	if err != nil {
		t.Error(err)
	}
}
