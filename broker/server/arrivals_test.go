// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"context"
	"io"
	"net"
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
// first part only.
func stall(t *testing.T, socket string) net.Conn {
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
	part := append([]byte{0, 0, 0x10, 0, 0}, make([]byte, 1000)...) // its length is 1 << 20
	for _, err := range []error{
		framer.WriteSettings(),
		framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers.Bytes(), EndHeaders: true}),
		framer.WriteData(1, false, part),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	// The rest may be sent once the broker says so.
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
	b := startWith(t, cipherProfiles, nil, server.WithMemory(oneAtATime), server.WithIdleTime(500*time.Millisecond))
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
