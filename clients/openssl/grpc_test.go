// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
)

// grpcServer answers each message with its payload.
type grpcServer struct {
	testpb.UnimplementedTestServiceServer
}

func (grpcServer) UnaryCall(ctx context.Context, request *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	if string(request.Payload.GetBody()) == "wait" {
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return &testpb.SimpleResponse{Payload: request.Payload}, nil
}

func (grpcServer) StreamingInputCall(stream grpc.ClientStreamingServer[testpb.StreamingInputCallRequest, testpb.StreamingInputCallResponse]) error {
	var sum int32
	for {
		request, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&testpb.StreamingInputCallResponse{AggregatedPayloadSize: sum})
		}
		if err != nil {
			return err
		}
		sum += int32(len(request.Payload.GetBody()))
	}
}

func (grpcServer) StreamingOutputCall(request *testpb.StreamingOutputCallRequest, stream grpc.ServerStreamingServer[testpb.StreamingOutputCallResponse]) error {
	for _, parameters := range request.ResponseParameters {
		if err := stream.Send(&testpb.StreamingOutputCallResponse{Payload: &testpb.Payload{Body: make([]byte, parameters.Size)}}); err != nil {
			return err
		}
	}
	return nil
}

func (grpcServer) FullDuplexCall(stream grpc.BidiStreamingServer[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse]) error {
	for {
		request, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&testpb.StreamingOutputCallResponse{Payload: request.Payload}); err != nil {
			return err
		}
	}
}

func serveGRPC(t testing.TB, authority *authority) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(authority.serverConfig(t))))
	testpb.RegisterTestServiceServer(server, grpcServer{})
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return listener.Addr().String()
}

// secret is a credential of calls, which gRPC sends over secure connections only.
type secret struct{}

func (secret) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"secret": "value"}, nil
}

func (secret) RequireTransportSecurity() bool { return true }

func dialGRPC(t testing.TB, p provider, address string) testpb.TestServiceClient {
	t.Helper()
	client, closeConn := connectGRPC(t, p, address)
	t.Cleanup(closeConn)
	return client
}

func connectGRPC(t testing.TB, p provider, address string) (client testpb.TestServiceClient, closeConn func()) {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(p.forGRPC()), grpc.WithPerRPCCredentials(secret{}))
	if err != nil {
		t.Fatal(err)
	}
	return testpb.NewTestServiceClient(conn), func() { _ = conn.Close() }
}

func TestGRPCCallsAndStreamsOfAllKinds(t *testing.T) {
	authority := newAuthority(t)
	address := serveGRPC(t, authority)
	withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		client := dialGRPC(t, p, address)
		payload := &testpb.Payload{Body: bytes.Repeat([]byte("x"), 100_000)}

		var caller peer.Peer
		reply, err := client.UnaryCall(ctx, &testpb.SimpleRequest{Payload: payload}, grpc.Peer(&caller))
		if err != nil || !bytes.Equal(reply.Payload.Body, payload.Body) {
			t.Fatalf("unary call: %v", err)
		}
		info, ok := caller.AuthInfo.(credentials.TLSInfo)
		if !ok || info.SecurityLevel != credentials.PrivacyAndIntegrity || info.State.NegotiatedProtocol != "h2" || len(info.State.PeerCertificates) != 1 {
			t.Errorf("the connection is %+v", caller.AuthInfo)
		}

		input, err := client.StreamingInputCall(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if err := input.Send(&testpb.StreamingInputCallRequest{Payload: payload}); err != nil {
				t.Fatal(err)
			}
		}
		if sum, err := input.CloseAndRecv(); err != nil || sum.AggregatedPayloadSize != 1_000_000 {
			t.Errorf("client stream: %v: %v", sum, err)
		}

		output, err := client.StreamingOutputCall(ctx, &testpb.StreamingOutputCallRequest{ResponseParameters: []*testpb.ResponseParameters{{Size: 1}, {Size: 100_000}}})
		if err != nil {
			t.Fatal(err)
		}
		received := 0
		for {
			message, err := output.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			received += len(message.Payload.Body)
		}
		if received != 100_001 {
			t.Errorf("server stream: received %d bytes", received)
		}
	})
}

func TestManyMessagesOnManyStreams(t *testing.T) {
	streams, messages := 100, 1000
	if testing.Short() {
		streams, messages = 10, 50
	}
	authority := newAuthority(t)
	address := serveGRPC(t, authority)
	withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
		defer cancel()
		client := dialGRPC(t, p, address)
		var working sync.WaitGroup
		for range streams {
			working.Go(func() {
				if err := exchange(ctx, client, messages); err != nil {
					t.Error(err)
				}
			})
		}
		working.Wait()
	})
}

// exchange sends messages on a stream, while another goroutine receives them.
func exchange(ctx context.Context, client testpb.TestServiceClient, messages int) error {
	stream, err := client.FullDuplexCall(ctx)
	if err != nil {
		return err
	}
	received := make(chan error, 1)
	go func() {
		for i := range messages {
			message, err := stream.Recv()
			if err != nil {
				received <- err
				return
			}
			if len(message.Payload.Body) != i {
				received <- errors.New("the messages are not in their order")
				return
			}
		}
		received <- nil
	}()
	for i := range messages {
		if err := stream.Send(&testpb.StreamingOutputCallRequest{Payload: &testpb.Payload{Body: make([]byte, i)}}); err != nil {
			return errors.Join(err, <-received)
		}
	}
	if err := <-received; err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		return errors.New("the stream did not end")
	}
	return nil
}

func TestAGRPCCallEndsWithItsContext(t *testing.T) {
	authority := newAuthority(t)
	address := serveGRPC(t, authority)
	withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
		client := dialGRPC(t, p, address)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := client.UnaryCall(ctx, &testpb.SimpleRequest{Payload: &testpb.Payload{Body: []byte("wait")}})
			ended <- err
		}()
		// A second call shows that the connection is there and shared.
		if _, err := client.UnaryCall(t.Context(), &testpb.SimpleRequest{}); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-ended; status.Code(err) != codes.Canceled {
			t.Errorf("the call ended with %v", err)
		}
	})
}

func TestGRPCCallsToWrongServersFail(t *testing.T) {
	authority, stranger := newAuthority(t), newAuthority(t)
	for name, address := range map[string]string{
		"a server that is not trusted":  serveGRPC(t, stranger),
		"a server that has no protocol": serve(t, authority.serverConfig(t), hold),
	} {
		t.Run(name, func(t *testing.T) {
			withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				_, err := dialGRPC(t, p, address).UnaryCall(ctx, &testpb.SimpleRequest{})
				if status.Code(err) != codes.Unavailable {
					t.Errorf("the call ended with %v", err)
				}
			})
		})
	}
}
