// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/work"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
)

func TestADefectFailsOneRequestAndKeepsItsInputOutOfTheLog(t *testing.T) {
	for sentence, test := range map[string]struct {
		fault func(input []byte)
		cause string
	}{
		"a defect that Go found": {
			func(input []byte) { beyond := len(input); _ = input[beyond] },
			"index out of range",
		},
		"a defect that quotes the input": {
			func(input []byte) { panic("cannot hash " + string(input)) },
			"cause=string",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var log strings.Builder
			s := NewService(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), telemetry.NewMetrics("test"))
			method := Unary(s, "Hash", profile.OpHashData, func(_ *handlers.Call, request *v0.HashRequest) (*v0.HashResponse, error) {
				test.fault(request.GetInput())
				return &v0.HashResponse{}, nil
			})
			wire, err := proto.Marshal(&v0.HashRequest{Input: []byte("a secret")})
			if err != nil {
				t.Fatal(err)
			}
			_, err = method.Handler(nil, received(t, wire), nil, nil)
			if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want Internal without the input", err)
			}
			if got := log.String(); strings.Contains(got, "a secret") || !strings.Contains(got, test.cause) || !strings.Contains(got, "unary_test.go") {
				t.Errorf("log %q, want the cause %q and the stack, without the input", got, test.cause)
			}
		})
	}
}

func TestADefectInAServiceOfGRPCFailsOneCall(t *testing.T) {
	s := NewService(t.Context(), slog.New(slog.DiscardHandler), telemetry.NewMetrics("test"))
	handle := s.GuardMethod("Y", func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) { panic(1) })
	if _, err := handle(nil, received(t, nil), nil, nil); status.Code(err) != codes.Internal {
		t.Errorf("unary: got %v, want Internal", err)
	}
	stream := s.guardStream("Y", func(any, grpc.ServerStream) error { panic(1) })
	if err := stream(nil, &guardedStream{ctx: received(t, nil)}); status.Code(err) != codes.Internal {
		t.Errorf("stream: got %v, want Internal", err)
	}
}

// received is the context of a call whose only message has these bytes.
func received(t *testing.T, wire []byte) context.Context {
	t.Helper()
	ctx := peer.NewContext(t.Context(), &peer.Peer{AuthInfo: connectionInfo(t)})
	message := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(wire))), wire...)
	return grpc.NewContextWithServerTransportStream(ctx, &cannedStream{message: message})
}

// connectionInfo returns the information that gRPC has about a connection to a socket.
func connectionInfo(t *testing.T) credentials.AuthInfo {
	t.Helper()
	dir, err := os.MkdirTemp("", "broker") // a directory whose path is short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	sockets, err := unixsocket.Listen(unixsocket.Options{Dir: dir, Group: -1})
	if err != nil {
		t.Fatal(err)
	}
	var dialer net.Dialer
	client, err := dialer.DialContext(t.Context(), "unix", sockets.Paths()[0])
	if err != nil {
		t.Fatal(err)
	}
	from := flow.NewCaller("", flow.ShareOf(128<<20, 1, 1), &work.NewPool().Processors)
	conn, err := flow.NewListener(sockets.Listeners()[0], from).Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, end := range []io.Closer{conn, client, sockets} {
			if err := end.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	_, info, err := flow.Credentials{}.ServerHandshake(conn)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// cannedStream is a stream of gRPC with one message.
type cannedStream struct {
	grpc.ServerTransportStream
	message []byte
}

// ReadMessageHeader implements wireStream.
func (s *cannedStream) ReadMessageHeader(into []byte) error {
	if len(s.message) == 0 {
		return io.EOF
	}
	s.message = s.message[copy(into, s.message):]
	return nil
}

// RecvCompress implements wireStream.
func (*cannedStream) RecvCompress() string { return "" }
