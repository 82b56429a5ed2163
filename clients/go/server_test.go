// SPDX-License-Identifier: Apache-2.0

package cryptobroker_test

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"

	sessionv1 "github.com/crypto-broker/crypto-broker-operator/clients/go/internal/stubs/cryptobroker/session/v1"
	streamv1 "github.com/crypto-broker/crypto-broker-operator/clients/go/internal/stubs/cryptobroker/stream/v1"
	cryptobrokerv1 "github.com/crypto-broker/crypto-broker-operator/clients/go/internal/stubs/cryptobroker/v1"
)

// faulty is a broker whose faults a test controls. Unary calls get the result of hash. A stream is passed to exchange, if it is set.
type faulty struct {
	cryptobrokerv1.UnimplementedCryptoServiceServer
	streamv1.UnimplementedStreamServiceServer
	hash     func(*cryptobrokerv1.HashDataRequest) (*cryptobrokerv1.HashDataResponse, error)
	exchange func(grpc.BidiStreamingServer[streamv1.ExchangeRequest, streamv1.ExchangeResponse]) error

	mu      sync.Mutex
	calls   []*cryptobrokerv1.HashDataRequest
	streams int
}

func (f *faulty) HashData(_ context.Context, r *cryptobrokerv1.HashDataRequest) (*cryptobrokerv1.HashDataResponse, error) {
	f.mu.Lock()
	f.calls = append(f.calls, r)
	f.mu.Unlock()
	if f.hash == nil {
		return hashed("unary"), nil
	}
	return f.hash(r)
}

func (f *faulty) Exchange(stream grpc.BidiStreamingServer[streamv1.ExchangeRequest, streamv1.ExchangeResponse]) error {
	f.mu.Lock()
	f.streams++
	f.mu.Unlock()
	if f.exchange == nil {
		return f.UnimplementedStreamServiceServer.Exchange(stream)
	}
	return f.exchange(stream)
}

// seen is how many calls of gRPC and streams there were.
func (f *faulty) seen() (calls, streams int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls), f.streams
}

// hashed is a reply with a digest that says where it came from.
func hashed(digest string) *cryptobrokerv1.HashDataResponse {
	return &cryptobrokerv1.HashDataResponse{HashValue: &cryptobrokerv1.HashDataResponse_HashValueRaw{HashValueRaw: []byte(digest)}}
}

// replied is a reply on a stream.
func replied(id uint64, digest string) *streamv1.Reply {
	return &streamv1.Reply{Id: id, Result: &streamv1.Reply_HashData{HashData: hashed(digest)}}
}

// answer replies to every call of a stream until it ends.
func answer(stream grpc.BidiStreamingServer[streamv1.ExchangeRequest, streamv1.ExchangeResponse]) error {
	for {
		request, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, call := range request.GetCalls() {
			if err := stream.Send(&streamv1.ExchangeResponse{Replies: []*streamv1.Reply{replied(call.GetId(), "stream")}}); err != nil {
				return err
			}
		}
	}
}

// serve serves a faulty broker. It returns the socket, and a function that ends it.
func serve(t testing.TB, f *faulty) (socket string, stop func()) {
	t.Helper()
	socket = filepath.Join(socketDir(t), "s")
	return socket, serveAt(t, f, socket)
}

func serveAt(t testing.TB, f *faulty, socket string) (stop func()) {
	t.Helper()
	return serveServices(t, f, f, socket)
}

func serveServices(t testing.TB, crypto cryptobrokerv1.CryptoServiceServer, stream streamv1.StreamServiceServer, socket string) (stop func()) {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	cryptobrokerv1.RegisterCryptoServiceServer(server, crypto)
	streamv1.RegisterStreamServiceServer(server, stream)
	if sessions, ok := crypto.(sessionv1.SessionServiceServer); ok {
		sessionv1.RegisterSessionServiceServer(server, sessions)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	stop = sync.OnceFunc(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}
