// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
)

var uid, gid = os.Geteuid(), os.Getegid()

// hashes asks for the digest of "abc" and returns the algorithm.
func hashes(t *testing.T, conn *grpc.ClientConn, profile string) (string, error) {
	t.Helper()
	reply, err := call(t, conn, methodHash, message{}.text(requestProfile, profile).text(requestInput, "abc"))
	if err != nil {
		return "", err
	}
	return fields(t, reply)[1].Value, nil
}

func TestABrokerWithoutProfilesSaysSoUntilItHasSome(t *testing.T) {
	b := start(t, "")
	conn := connect(t, b.socket(""))
	health := healthpb.NewHealthClient(conn)
	check := func(want healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		reply, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if reply.GetStatus() != want {
			t.Errorf("health %s, want %s", reply.GetStatus(), want)
		}
	}
	check(healthpb.HealthCheckResponse_NOT_SERVING)
	if _, err := hashes(t, conn, "P"); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v, want Unavailable, which clients try again", err)
	}
	b.use(t, sha256Profile)
	check(healthpb.HealthCheckResponse_SERVING)
	if algorithm, err := hashes(t, conn, "P"); err != nil || algorithm != "sha-256" {
		t.Errorf("got %q, %v", algorithm, err)
	}
}

func TestHealthOfAServiceThatIsNotKnownIsNotFound(t *testing.T) {
	conn := connect(t, start(t, sha256Profile).socket(""))
	_, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: "other"})
	if status.Code(err) != codes.NotFound {
		t.Errorf("got %v, want NotFound", err)
	}
}

func TestANewSetIsServedToClientsThatAreConnected(t *testing.T) {
	b := start(t, sha256Profile)
	conn := connect(t, b.socket(""))
	for _, algorithm := range []string{"sha-384", "sha3-512", "shake-256"} {
		b.use(t, "- Name: P\n  API: {HashData: {HashAlg: "+algorithm+"}}\n- Name: Q\n  API: {HashData: {HashAlg: sha-256}}\n")
		if got, err := hashes(t, conn, "P"); err != nil || got != algorithm {
			t.Errorf("got %q, %v, want %s", got, err, algorithm)
		}
	}
	b.use(t, "[]")
	if _, err := hashes(t, conn, "P"); status.Code(err) != codes.InvalidArgument {
		t.Errorf("got %v, want InvalidArgument: the profile is gone", err)
	}
}

func TestTheSocketTellsWhichContainerCalls(t *testing.T) {
	b := start(t, "- Name: P\n  API: {HashData: {HashAlg: sha-256}}\n  Callers: {Containers: [app]}\n", "app", "side")
	if _, err := hashes(t, connect(t, b.socket("app")), "P"); err != nil {
		t.Errorf("app: %v", err)
	}
	if _, err := hashes(t, connect(t, b.socket("side")), "P"); status.Code(err) != codes.PermissionDenied {
		t.Errorf("side: got %v, want PermissionDenied", err)
	}
}

func TestReflectionDescribesTheServices(t *testing.T) {
	conn := connect(t, start(t, sha256Profile).socket(""))
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(request *reflectionpb.ServerReflectionRequest) *reflectionpb.ServerReflectionResponse {
		t.Helper()
		if err := stream.Send(request); err != nil {
			t.Fatal(err)
		}
		reply, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	reply := ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	var names []string
	for _, service := range reply.GetListServicesResponse().GetService() {
		names = append(names, service.GetName())
	}
	for _, want := range []string{"CryptoBroker.CryptoGrpc", "cryptobroker.v1.CryptoService", "grpc.health.v1.Health"} {
		if !slices.Contains(names, want) {
			t.Errorf("services %v, want %s among them", names, want)
		}
		reply := ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: want}})
		if len(reply.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
			t.Errorf("%s is not described: %v", want, reply.GetErrorResponse())
		}
	}
}

// unfinished begins a request without a message, so that the request stays in progress for as long as the test needs.
func unfinished(t *testing.T, b *broker, conn *grpc.ClientConn) grpc.ClientStream {
	t.Helper()
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, methodHash, grpc.ForceCodecV2(wire{}))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(waitLimit); !strings.Contains(b.metricsText(t), "crypto_broker_requests_in_flight 1"); {
		if time.Now().After(deadline) {
			t.Fatal("the request did not begin")
		}
	}
	return stream
}

func TestShutdownWaitsForRequestsUnderWay(t *testing.T) {
	b := start(t, sha256Profile)
	stream := unfinished(t, b, connect(t, b.socket("")))
	done := make(chan error, 1)
	go func() { done <- b.Shutdown(t.Context()) }()
	// The socket closes first, so that no new client can connect.
	for deadline := time.Now().Add(waitLimit); !errors.Is(dial(t, b.socket("")), syscall.ECONNREFUSED); {
		if time.Now().After(deadline) {
			t.Fatal("the socket still takes connections")
		}
	}
	select {
	case err := <-done:
		t.Fatalf("shut down with a request under way: %v", err)
	default:
	}
	if err := stream.SendMsg([]byte(request(nil))); err != nil {
		t.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	var reply []byte
	if err := stream.RecvMsg(&reply); err != nil {
		t.Errorf("the request under way failed: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

func TestShutdownBreaksOffWhatTakesTooLong(t *testing.T) {
	b := start(t, sha256Profile)
	stream := unfinished(t, b, connect(t, b.socket("")))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := b.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("shutdown: got %v, want that the deadline passed", err)
	}
	var reply []byte
	if err := stream.RecvMsg(&reply); status.Code(err) != codes.Unavailable {
		t.Errorf("the request broken off: got %v, want Unavailable", err)
	}
}

func TestShutdownDoesNotWaitForThoseWhoWatchItsHealth(t *testing.T) {
	b := start(t, sha256Profile)
	watching, err := healthpb.NewHealthClient(connect(t, b.socket(""))).Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watching.Recv(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	if err := b.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}
