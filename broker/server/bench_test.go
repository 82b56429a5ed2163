// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"testing"

	"google.golang.org/grpc"
)

// BenchmarkHashData measures a call through the socket, client and broker in one
// process.
func BenchmarkHashData(b *testing.B) {
	broker := start(b, sha256Profile)
	request := []byte(request(message{}.text(metadataID, "4f6b")))
	invoke := func(b *testing.B, conn *grpc.ClientConn) {
		var reply []byte
		if err := conn.Invoke(b.Context(), methodHashData, request, &reply, grpc.ForceCodecV2(wire{})); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("one caller", func(b *testing.B) {
		conn := connect(b, broker.socket(""))
		b.ReportAllocs()
		for b.Loop() {
			invoke(b, conn)
		}
	})
	b.Run("many callers", func(b *testing.B) {
		conn := connect(b, broker.socket(""))
		b.ReportAllocs()
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				invoke(b, conn)
			}
		})
	})
}
