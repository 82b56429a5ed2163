// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"context"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
)

func TestTheNamesOfReleasedBrokersWork(t *testing.T) {
	for environmentName, want := range map[string]codes.Code{"prod": codes.Unimplemented, "dev": codes.OK} {
		t.Run("in "+environmentName, func(t *testing.T) {
			at := newPlace(t, "sha-256")
			broker := startWith(t, environment(
				"CRYPTO_BROKER_PROFILES_DIR="+at.profiles, "CRYPTO_BROKER_SOCKET_DIR="+at.sockets,
				"CRYPTO_BROKER_APP_ENV="+environmentName, "CRYPTO_BROKER_GRPC_MAX_CONCURRENT_STREAMS=1",
				"CRYPTO_BROKER_LOG_LEVEL=INFO", "CRYPTO_BROKER_LOG_FORMAT=Json", "CRYPTO_BROKER_LOG_OUTPUT=stdErr",
			))
			broker.listening()
			conn := connect(t, at.socket(""))
			_, err := v0.NewCryptoGrpcDevClient(conn).FakeEndpoint(t.Context(), &v0.FakeEndpointRequest{}, grpc.WaitForReady(true))
			if got := status.Code(err); got != want {
				t.Errorf("the development service answers %s, want %s", got, want)
			}

			// An open stream leaves no room for a call on the same connection.
			ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
			defer cancel()
			stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/cryptobroker.stream.v1.StreamService/Exchange")
			if err != nil {
				t.Fatal(err)
			}
			short, end := context.WithTimeout(ctx, 100*time.Millisecond)
			defer end()
			request := &v0.HashDataRequest{Profile: "Default"}
			if _, err := v0.NewCryptoGrpcClient(conn).HashData(short, request); status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("beside an open stream: %v, want a call that waits", err)
			}
			if err := stream.CloseSend(); err != nil {
				t.Fatal(err)
			}
			if err := stream.RecvMsg(&v0.HashDataResponse{}); err != io.EOF { //nolint:errorlint // gRPC promises that one
				t.Fatal(err)
			}
			if _, err := v0.NewCryptoGrpcClient(conn).HashData(ctx, request); err != nil {
				t.Error(err)
			}
		})
	}
}
