// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	streamv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/stream/v1"
)

// The bound is far below the size of the data. It has room for garbage that is not collected yet:
// 12 MiB, and what gRPC keeps for its connections.
func TestAStreamOf256MiBTakesLittleMemoryOfTheBroker(t *testing.T) {
	const size, most = 256 << 20, 24 << 20
	at := newPlace(t, "sha-256")
	at.write("- Name: Data\n  API: {DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: kek}]}}\n")
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o700), os.WriteFile(filepath.Join(dir, "kek.bin"), []byte(strings.Repeat("k", 32)), 0o600)); err != nil {
		t.Fatal(err)
	}
	broker := start(t, at.args("--keys-dir", dir, "--memory-limit", "134217728")...)
	client := streamv1.NewStreamServiceClient(connect(t, at.socket("")))
	passThrough(t, client, 1<<20)
	before := broker.mostResident()
	passThrough(t, client, size)
	if grown := broker.mostResident() - before; grown > most {
		t.Errorf("the broker took %d bytes for a stream of %d, expected at most %d", grown, size, most)
	} else {
		t.Logf("the broker took %d bytes for a stream of %d", grown, size)
	}
}

// passThrough encrypts size bytes, and decrypts them as they come.
func passThrough(t *testing.T, client streamv1.StreamServiceClient, size int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	encrypting, err := client.EncryptStream(ctx, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	decrypting, err := client.DecryptStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	failures := make(chan error, 2)
	go func() {
		chunk := make([]byte, 64<<10)
		err := encrypting.Send(&streamv1.EncryptStreamRequest{Part: &streamv1.EncryptStreamRequest_Start{Start: &streamv1.EncryptStreamStart{Profile: "Data", KeyId: "kek"}}})
		for sent := 0; err == nil && sent < size; sent += len(chunk) {
			err = encrypting.Send(&streamv1.EncryptStreamRequest{Part: &streamv1.EncryptStreamRequest_Chunk{Chunk: chunk}})
		}
		failures <- errors.Join(err, encrypting.CloseSend())
	}()
	go func() {
		err := decrypting.Send(&streamv1.DecryptStreamRequest{Part: &streamv1.DecryptStreamRequest_Start{Start: &streamv1.DecryptStreamStart{Profile: "Data"}}})
		for err == nil {
			var reply *streamv1.EncryptStreamResponse
			if reply, err = encrypting.Recv(); err == nil && len(reply.GetChunk()) > 0 {
				err = decrypting.Send(&streamv1.DecryptStreamRequest{Part: &streamv1.DecryptStreamRequest_Chunk{Chunk: reply.GetChunk()}})
			}
		}
		if errors.Is(err, io.EOF) {
			err = decrypting.CloseSend()
		}
		failures <- err
	}()
	found := 0
	for {
		reply, err := decrypting.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found += len(reply.GetChunk())
	}
	if err := errors.Join(<-failures, <-failures); err != nil || found != size {
		t.Fatalf("found %d bytes, expected %d: %v", found, size, err)
	}
}
