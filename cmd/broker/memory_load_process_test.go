// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	streamv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/stream/v1"
	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

// startLimited starts a broker with a memory limit. If the test may make a control group, the broker gets one and has to find the
// limit by itself. Otherwise the flag sets the limit.
func startLimited(t *testing.T, bytes int64, at *place) (*process, *limited) {
	t.Helper()
	group := limitMemory(t, bytes)
	if group == nil {
		return start(t, at.args("--memory-limit", strconv.FormatInt(bytes, 10))...), nil
	}
	return startIn(t, group, environment(), at.args()...), group
}

// largeProfiles allow what the large calls ask for.
const largeProfiles = "- Name: Default\n  API:\n    HashData: {HashAlg: sha-256}\n    EncryptData: {EncryptAlg: aes-gcm, KeySize: 256}\n"

// largeCall makes a call with a MiB, number i of all.
type largeCall func(ctx context.Context, i int) error

// connections dials a socket so many times.
func connections(t *testing.T, n int, socket string) []*grpc.ClientConn {
	t.Helper()
	conns := make([]*grpc.ClientConn, n)
	for i := range conns {
		conns[i] = connect(t, socket)
		conns[i].Connect()
	}
	return conns
}

// largeHashes are unary calls over so many connections.
func largeHashes(n int) func(*testing.T, string) largeCall {
	return func(t *testing.T, socket string) largeCall {
		t.Helper()
		conns, input := connections(t, n, socket), make([]byte, 1<<20)
		return func(ctx context.Context, i int) error {
			_, err := v0.NewCryptoGrpcClient(conns[i%n]).HashData(ctx, &v0.HashDataRequest{Profile: "Default", Input: input}, grpc.WaitForReady(true))
			return err
		}
	}
}

// largeEncryptions have replies that are as large.
func largeEncryptions(n int) func(*testing.T, string) largeCall {
	return func(t *testing.T, socket string) largeCall {
		t.Helper()
		conns := connections(t, n, socket)
		request := &v0.EncryptDataRequest{
			Profile: "Default", KeySource: &v0.KeySource{Source: &v0.KeySource_RawKey{RawKey: make([]byte, 32)}},
			Plaintext: make([]byte, 1<<20), EncryptMetadata: &v0.EncryptMetadata{Nonce: make([]byte, 12)},
		}
		return func(ctx context.Context, i int) error {
			reply, err := v0.NewCryptoGrpcClient(conns[i%n]).EncryptData(ctx, request, grpc.WaitForReady(true))
			if err == nil && len(reply.GetCiphertext()) != 1<<20 {
				err = fmt.Errorf("a ciphertext of %d bytes", len(reply.GetCiphertext()))
			}
			return err
		}
	}
}

// largeExchanges are calls of so many streams of Exchange, each of a connection.
func largeExchanges(n int) func(*testing.T, string) largeCall {
	return func(t *testing.T, socket string) largeCall {
		t.Helper()
		input := make([]byte, 1<<20)
		streams := make([]*sharedStream, n)
		for i, conn := range connections(t, n, socket) {
			stream, err := streamv1.NewStreamServiceClient(conn).Exchange(t.Context(), grpc.WaitForReady(true))
			if err != nil {
				t.Fatal(err)
			}
			streams[i] = &sharedStream{stream: stream, replies: map[uint64]chan<- error{}}
			go streams[i].read()
		}
		return func(_ context.Context, i int) error {
			return streams[i%n].call(&streamv1.Call{Id: uint64(i), Request: &streamv1.Call_HashData{HashData: &v1.HashDataRequest{Profile: "Default", Input: input}}})
		}
	}
}

// largeParts are calls of HashStream over so many connections, whose whole input is one
// message.
func largeParts(n int) func(*testing.T, string) largeCall {
	return func(t *testing.T, socket string) largeCall {
		t.Helper()
		conns := connections(t, n, socket)
		start := &streamv1.HashStreamRequest{Part: &streamv1.HashStreamRequest_Start{Start: &streamv1.HashStreamStart{Profile: "Default"}}}
		chunk := &streamv1.HashStreamRequest{Part: &streamv1.HashStreamRequest_Chunk{Chunk: make([]byte, 1<<20)}}
		return func(ctx context.Context, i int) error {
			stream, err := streamv1.NewStreamServiceClient(conns[i%n]).HashStream(ctx, grpc.WaitForReady(true))
			if err != nil {
				return err
			}
			for _, message := range []*streamv1.HashStreamRequest{start, chunk} {
				if err := stream.Send(message); err != nil {
					break // receiving returns the reason
				}
			}
			_, err = stream.CloseAndRecv()
			return err
		}
	}
}

// sharedStream is one Exchange of many callers.
type sharedStream struct {
	stream  streamv1.StreamService_ExchangeClient
	sending sync.Mutex

	mu      sync.Mutex
	replies map[uint64]chan<- error
	ended   error
}

func (s *sharedStream) call(call *streamv1.Call) error {
	reply := make(chan error, 1)
	s.mu.Lock()
	s.replies[call.GetId()] = reply
	ended := s.ended
	s.mu.Unlock()
	if ended != nil {
		return ended
	}
	s.sending.Lock()
	err := s.stream.Send(&streamv1.ExchangeRequest{Calls: []*streamv1.Call{call}})
	s.sending.Unlock()
	if err != nil && !errors.Is(err, io.EOF) { // reading returns the reason
		return err
	}
	return <-reply
}

func (s *sharedStream) read() {
	for {
		message, err := s.stream.Recv()
		s.mu.Lock()
		if err != nil {
			s.ended = err
			for _, reply := range s.replies {
				reply <- err
			}
			s.mu.Unlock()
			return
		}
		for _, reply := range message.GetReplies() {
			var failed error
			if refused := reply.GetStatus(); refused != nil {
				failed = status.Error(codes.Code(refused.GetCode()), refused.GetMessage())
			}
			s.replies[reply.GetId()] <- failed
			delete(s.replies, reply.GetId())
		}
		s.mu.Unlock()
	}
}

func TestAThousandLargeCallsAtOnceEndWithinTheMemory(t *testing.T) {
	const calls, limit = 1024, 128 << 20
	for sentence, prepare := range map[string]func(*testing.T, string) largeCall{
		"hashes over one connection":             largeHashes(1),
		"hashes over sixteen connections":        largeHashes(16),
		"hashes over a hundred connections":      largeHashes(100),
		"hashes, each over one of its own":       largeHashes(calls),
		"encryptions over one connection":        largeEncryptions(1),
		"encryptions over a hundred connections": largeEncryptions(100),
		"hashes over one stream of Exchange":     largeExchanges(1),
		"hashes over a hundred streams":          largeExchanges(100),
		"hashes over 256 streams":                largeExchanges(256),
		"inputs of HashStream, each in one part": largeParts(100),
	} {
		t.Run(sentence, func(t *testing.T) {
			at := newPlace(t, "")
			at.write(largeProfiles)
			broker, group := startLimited(t, limit, at)
			broker.listening()
			call := prepare(t, at.socket(""))
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			var all sync.WaitGroup
			failures := make(chan error, calls)
			for i := range calls {
				all.Go(func() {
					if err := call(ctx, i); err != nil && status.Code(err) != codes.DeadlineExceeded {
						failures <- err
					}
				})
			}
			all.Wait()
			close(failures)
			var errs []error
			for err := range failures {
				errs = append(errs, err)
			}
			if len(errs) > 0 {
				t.Errorf("%d of %d calls failed, the first by %v", len(errs), calls, errs[0])
			}
			if err := ctx.Err(); err != nil {
				t.Errorf("the calls did not end in time: %v", err)
			}
			select {
			case <-broker.exited:
				t.Error("the broker is gone: ", broker.err)
			default:
			}
			if group != nil {
				t.Logf("highest use %s of %d", group.peak(t), limit)
				if kills := group.kills(t); strings.Contains(kills, "oom_kill ") && !strings.Contains(kills, "oom_kill 0") {
					t.Errorf("the system killed something: %q", kills)
				}
			}
			if group == nil {
				if most := broker.mostResident(); most > limit {
					t.Errorf("resident set of %d bytes, expected at most %d", most, limit)
				}
			}
			broker.stop()
		})
	}
}
