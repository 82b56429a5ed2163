// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

// The services that have the methods of the development service.
var developmentServices = map[string]string{
	"G1":       "/CryptoBroker.CryptoGrpc/",
	"G2 to G4": "/CryptoBroker.CryptoGrpcDev/",
	"G5":       "/cryptobroker.v1.CryptoDevService/",
}

func development(t testing.TB) *broker {
	return startWith(t, sha256Profile, nil, server.WithDevelopmentService())
}

func TestEachGenerationMeasuresTheBroker(t *testing.T) {
	conn := connect(t, development(t).socket(""))
	for generation, service := range developmentServices {
		t.Run(generation, func(t *testing.T) {
			metadata := message{}.text(metadataID, "id").text(12, "later")
			started := time.Now()
			reply := ask(t, conn, service+"Benchmark", message{}.bytes(1, metadata))
			if took := time.Since(started); took > 30*time.Second {
				t.Errorf("it took %s", took)
			}
			if len(reply) != 2 || reply[2] != string(metadata) {
				t.Errorf("reply %q, want results and the metadata %q", reply, metadata)
			}
			var told struct {
				Results []struct {
					Name    string
					AvgTime *int64
				}
			}
			decoder := json.NewDecoder(strings.NewReader(reply[1]))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&told); err != nil {
				t.Fatalf("%v in %s", err, reply[1])
			}
			var names []string
			for _, result := range told.Results {
				names = append(names, result.Name)
				if result.AvgTime == nil || *result.AvgTime <= 0 {
					t.Errorf("%s has no time: %s", result.Name, reply[1])
				}
			}
			for _, want := range []string{
				"HashData/sha-256", "HashData/shake-256", "EncryptData/aes-gcm-256", "DecryptData/aes-gcm-128",
				"SignData/ecdsa-with-sha-256", "VerifyData/ed25519", "SignCertificate/ecdsa-with-SHA256",
			} {
				if !slices.Contains(names, want) {
					t.Errorf("%s was not measured, only %v", want, names)
				}
			}
		})
	}
}

func TestEachGenerationHasAnEndpointThatDoesNothing(t *testing.T) {
	conn := connect(t, development(t).socket(""))
	for generation, service := range developmentServices {
		metadata := message{}.text(metadataID, "id")
		if generation != "G5" { // the others come from clients that have a text in field 2
			metadata = metadata.text(metadataCreatedAt, "2025-03-01")
		}
		reply := ask(t, conn, service+"FakeEndpoint", message{}.bytes(1, metadata))
		if len(reply) != 2 || reply[1] == "" || reply[2] != string(metadata) {
			t.Errorf("%s: reply %q, want a text and the metadata %q", generation, reply, metadata)
		}
		if reply := ask(t, conn, service+"FakeEndpoint", nil); len(reply) != 1 || reply[1] == "" {
			t.Errorf("%s: without metadata: %q", generation, reply)
		}
		for _, method := range []string{"FakeEndpoint", "Benchmark"} {
			refuses(t, conn, service+method, message{}.bytes(1, message{}.text(metadataID, "a\nb")), codes.InvalidArgument, method+": metadata.id has the byte 0x0a, expected printable ASCII only")
		}
		if _, err := call(t, conn, service+"Benchmark", message("\x0a")); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: a damaged request: %v", generation, err)
		}
	}
}

func TestTheDevelopmentServiceIsOffUnlessItIsSwitchedOn(t *testing.T) {
	conn := connect(t, start(t, sha256Profile).socket(""))
	for _, service := range developmentServices {
		for _, method := range []string{"FakeEndpoint", "Benchmark"} {
			if _, err := call(t, conn, service+method, nil); status.Code(err) != codes.Unimplemented {
				t.Errorf("%s%s: %v, want UNIMPLEMENTED", service, method, err)
			}
		}
	}
}

func TestAMeasurementEndsWithItsCall(t *testing.T) {
	conn := connect(t, development(t).socket(""))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			var reply []byte
			err := conn.Invoke(ctx, "/CryptoBroker.CryptoGrpcDev/Benchmark", []byte(nil), &reply, grpc.ForceCodecV2(wire{}))
			if status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("%v, want DEADLINE_EXCEEDED", err)
			}
		})
	}
	group.Wait()
	// No earlier call blocks the next one.
	ask(t, conn, "/CryptoBroker.CryptoGrpcDev/Benchmark", nil)
}

// reflected returns the methods of a service by reflection, or none if the server does not describe the service.
func reflected(t *testing.T, b *broker, symbol string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	stream, err := reflectionpb.NewServerReflectionClient(connect(t, b.socket(""))).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: symbol},
	}); err != nil {
		t.Fatal(err)
	}
	reply, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var methods []string
	for _, text := range reply.GetFileDescriptorResponse().GetFileDescriptorProto() {
		var file descriptorpb.FileDescriptorProto
		if err := proto.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		for _, service := range file.GetService() {
			for _, method := range service.GetMethod() {
				methods = append(methods, service.GetName()+"."+method.GetName())
			}
		}
	}
	return methods
}

func TestReflectionTellsOfTheDevelopmentServiceWhereItIsOn(t *testing.T) {
	off, on := start(t, sha256Profile), development(t)
	for _, c := range []struct {
		symbol, method string
	}{
		{"CryptoBroker.CryptoGrpc", "CryptoGrpc.Benchmark"},
		{"CryptoBroker.CryptoGrpc", "CryptoGrpc.FakeEndpoint"},
		{"CryptoBroker.CryptoGrpcDev", "CryptoGrpcDev.Benchmark"},
		{"CryptoBroker.BenchmarkRequest", "CryptoGrpcDev.FakeEndpoint"},
		{"cryptobroker.v1.CryptoDevService", "CryptoDevService.Benchmark"},
	} {
		if methods := reflected(t, off, c.symbol); slices.Contains(methods, c.method) {
			t.Errorf("%s is told by %s although it is off", c.method, c.symbol)
		}
		if methods := reflected(t, on, c.symbol); !slices.Contains(methods, c.method) {
			t.Errorf("%s is not told by %s, only %v", c.method, c.symbol, methods)
		}
	}
	if methods := reflected(t, off, "CryptoBroker.CryptoGrpc"); !slices.Contains(methods, "CryptoGrpc.VerifyData") || len(methods) != 8 {
		t.Errorf("CryptoGrpc has %v where the development service is off", methods)
	}
}
