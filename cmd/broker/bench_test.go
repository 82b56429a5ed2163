// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"testing"
	"time"

	"google.golang.org/grpc"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
)

// BenchmarkHashData measures calls from one process to a broker in another.
func BenchmarkHashData(b *testing.B) {
	at := newPlace(b, "sha-256")
	start(b, at.args()...).listening()
	request := &v0.HashDataRequest{Profile: "Default", Input: []byte("abc"), Metadata: &v0.Metadata{Id: "4f6b"}}
	b.Run("one caller", func(b *testing.B) {
		client := v0.NewCryptoGrpcClient(connect(b, at.socket("")))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := client.HashData(b.Context(), request, grpc.WaitForReady(true)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("64 callers", func(b *testing.B) {
		client := v0.NewCryptoGrpcClient(connect(b, at.socket("")))
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := client.HashData(b.Context(), request, grpc.WaitForReady(true)); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

// BenchmarkLargeHash measures calls that take the processor for longer than gRPC
// takes it.
func BenchmarkLargeHash(b *testing.B) {
	at := newPlace(b, "sha3-512")
	start(b, at.args()...).listening()
	client := v0.NewCryptoGrpcClient(connect(b, at.socket("")))
	request := &v0.HashDataRequest{Profile: "Default", Input: make([]byte, 1<<20)}
	measure(b, 16, func(int) error {
		_, err := client.HashData(b.Context(), request, grpc.WaitForReady(true))
		return err
	})
}

// BenchmarkStart measures the time from the start of the program to the first
// reply, and the whole of its short life.
func BenchmarkStart(b *testing.B) {
	at := newPlace(b, "sha-256")
	var served time.Duration
	for b.Loop() {
		started := time.Now()
		broker := start(b, at.args()...)
		conn := connect(b, at.socket(""))
		broker.listening()
		if _, err := hashes(b, conn); err != nil {
			b.Fatal(err)
		}
		served += time.Since(started)
		broker.stop()
	}
	b.ReportMetric(float64(served.Milliseconds())/float64(b.N), "ms/first-reply")
}
