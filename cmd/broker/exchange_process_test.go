// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	streamv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/stream/v1"
	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

func openExchange(t testing.TB, conn *grpc.ClientConn) grpc.BidiStreamingClient[streamv1.ExchangeRequest, streamv1.ExchangeResponse] {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	t.Cleanup(cancel)
	stream, err := streamv1.NewStreamServiceClient(conn).Exchange(ctx, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func TestTerminationUnderLoadTellsWhichCallsWereServed(t *testing.T) {
	at := newPlace(t, "sha-256")
	broker := start(t, at.args()...)
	broker.listening()
	stream := openExchange(t, connect(t, at.socket("")))
	request := &streamv1.Call_HashData{HashData: &v1.HashDataRequest{Profile: "Default", Input: bytes.Repeat([]byte("x"), 100_000)}}
	// The client sends calls until the stream ends, however many replies are missing.
	var sent uint64
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for stream.Send(&streamv1.ExchangeRequest{Calls: []*streamv1.Call{{Id: sent, Request: request}}}) == nil {
			sent++
		}
	}()
	replies := map[uint64]bool{}
	var goAway *streamv1.GoAway
	terminate := sync.OnceFunc(func() { broker.kill(syscall.SIGTERM) })
	for {
		message, err := stream.Recv()
		if err != nil {
			if status.Code(err) != codes.Unavailable {
				t.Errorf("the stream ended with %v, want Unavailable", err)
			}
			break
		}
		if goAway != nil {
			t.Error("a message followed the last one")
		}
		for _, reply := range message.GetReplies() {
			if reply.GetHashData() == nil || replies[reply.GetId()] {
				t.Fatalf("call %d: %v", reply.GetId(), reply)
			}
			replies[reply.GetId()] = true
		}
		goAway = message.GetGoAway()
		if len(replies) >= 500 {
			terminate()
		}
	}
	if goAway == nil {
		t.Error("the broker did not say that it leaves")
	}
	<-stopped
	broker.ends(0)
	for _, l := range broker.log() {
		if l["level"] != "INFO" {
			t.Errorf("logged %v", l)
		}
	}
	t.Logf("%d of %d calls were served", len(replies), sent)
}

func TestLargeCallsOfClientsThatDoNotReadStayOutside(t *testing.T) {
	const streams, calls, size = 16, 32, 1 << 20
	at := newPlace(t, "")
	at.write("- Name: Default\n  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random}}\n")
	broker := start(t, at.args()...)
	broker.listening()
	request := &streamv1.Call_EncryptData{EncryptData: &v1.EncryptDataRequest{
		Profile: "Default", KeySource: &v1.KeySource{Source: &v1.KeySource_RawKey{RawKey: bytes.Repeat([]byte("k"), 32)}},
		Plaintext: bytes.Repeat([]byte("x"), size),
	}}
	var group sync.WaitGroup
	var all []grpc.BidiStreamingClient[streamv1.ExchangeRequest, streamv1.ExchangeResponse]
	for range streams {
		// Each has its own connection, like a separate program.
		stream := openExchange(t, connect(t, at.socket("")))
		all = append(all, stream)
		group.Go(func() {
			for id := range uint64(calls) {
				if err := stream.Send(&streamv1.ExchangeRequest{Calls: []*streamv1.Call{{Id: id, Request: request}}}); err != nil {
					t.Error(err)
					return
				}
			}
			if err := stream.CloseSend(); err != nil {
				t.Error(err)
			}
		})
	}
	for i, stream := range all {
		got := 0
		for {
			message, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("stream %d after %d replies: %v", i, got, err)
			}
			for _, reply := range message.GetReplies() {
				if len(reply.GetEncryptData().GetCiphertext()) != size {
					t.Fatalf("stream %d: %v", i, reply.GetStatus())
				}
				got++
			}
		}
		if got != calls {
			t.Errorf("stream %d: %d replies, want %d", i, got, calls)
		}
	}
	group.Wait()
	peak := peakMemory(t, broker.cmd.Process.Pid)
	t.Logf("%d MiB were sent; the broker had up to %d MiB", streams*calls*size>>20, peak>>20)
	// Twice the data that may be in flight without a limit, because as much may be garbage, plus the garbage that the relaxed
	// collector allows.
	if peak > 288<<20 {
		t.Errorf("the broker had up to %d MiB, want at most 288", peak>>20)
	}
}

// peakMemory is the most memory in bytes that a process had resident.
func peakMemory(t testing.TB, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	t.Fatal("the system does not say how much memory the broker had")
	return 0
}
