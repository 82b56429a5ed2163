// SPDX-License-Identifier: Apache-2.0

//go:build process

// These tests need a program without the race detector, because with it sync.Pool drops objects at random.

package server_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"testing"

	"google.golang.org/grpc"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/tuning"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
)

// bare has only the operation behind the generated stubs.
type bare struct {
	v1.UnimplementedCryptoServiceServer
}

func (bare) HashData(_ context.Context, request *v1.HashDataRequest) (*v1.HashDataResponse, error) {
	sum := sha256.Sum256(request.GetInput())
	return &v1.HashDataResponse{
		Metadata:    request.GetMetadata(),
		HashValue:   &v1.HashDataResponse_HashValueHex{HashValueHex: hex.EncodeToString(sum[:])},
		Descriptor_: &v1.CryptoDescriptor{Profile: request.GetProfile(), Operation: "HashData", Algorithm: "sha-256"},
	}, nil
}

// startBare serves it with the options that the broker's server of gRPC has.
func startBare(t *testing.T) (socket string) {
	t.Helper()
	socket = filepath.Join(socketDir(t), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(tuning.ServerOptions()...)
	v1.RegisterCryptoServiceServer(s, bare{})
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return socket
}

// allocationsOfACall returns how many objects a call on a socket allocates, including the objects of its client. It takes the
// minimum of some tries, because the runtime also allocates objects.
func allocationsOfACall(t *testing.T, socket string) float64 {
	t.Helper()
	client := v1.NewCryptoServiceClient(connect(t, socket))
	request := &v1.HashDataRequest{Profile: "P", Input: []byte("abc"), Metadata: &v1.Metadata{Id: "5e7c6ab5"}}
	const calls = 250
	var before, after runtime.MemStats
	fewest := 1e9
	for range 8 {
		runtime.ReadMemStats(&before)
		for range calls {
			if _, err := client.HashData(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		fewest = min(fewest, float64(after.Mallocs-before.Mallocs)/calls)
	}
	return fewest
}

// tracerOf makes a tracer as variables of the environment say, nil for none.
func tracerOf(t *testing.T, variables map[string]string) *tracing.Tracer {
	t.Helper()
	config := tracing.NewConfig()
	for _, v := range config.Variables() {
		if value, ok := variables[v.Name]; ok {
			if err := v.Set(value); err != nil {
				t.Fatal(err)
			}
		}
	}
	made, err := tracing.New(t.Context(), config, tracing.Options{Version: "test", Stdout: io.Discard, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if made != nil {
		t.Cleanup(func() {
			if err := made.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	return made
}

func TestACallTakesNoMoreAllocationsThanOnABareServerOfGRPC(t *testing.T) {
	bare := allocationsOfACall(t, startBare(t))
	if got := allocationsOfACall(t, start(t, sha256Profile).socket("")); got > bare {
		t.Errorf("%.1f allocations, want no more than the %.1f on the bare server", got, bare)
	}
}

func TestTracingOfNoCallTakesNoAllocation(t *testing.T) {
	without := allocationsOfACall(t, start(t, sha256Profile).socket(""))
	for sentence, variables := range map[string]map[string]string{
		"since it is switched off":      {"OTEL_TRACES_EXPORTER": "none"},
		"since no call is sampled":      {"OTEL_TRACES_EXPORTER": "console", "OTEL_TRACES_SAMPLER": "always_off"},
		"since the ratio of calls is 0": {"OTEL_TRACES_EXPORTER": "console", "OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"},
	} {
		t.Run(sentence, func(t *testing.T) {
			b := startWith(t, sha256Profile, nil, server.WithTracer(tracerOf(t, variables)))
			// One object for each call would be 1. The objects of the runtime are less than 0.1.
			if got := allocationsOfACall(t, b.socket("")); got > without+0.5 {
				t.Errorf("%.1f allocations a call, want the %.1f without tracing", got, without)
			}
		})
	}
}
