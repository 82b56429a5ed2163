// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"testing"
)

// BenchmarkExchange measures batches of small hashes through the socket, client
// and broker in one process. The client only has to count the bytes that come
// back.
func BenchmarkExchange(b *testing.B) {
	broker := start(b, sha256Profile)
	for _, size := range []int{1, 32, 256} {
		b.Run(fmt.Sprintf("batches of %d", size), func(b *testing.B) {
			var calls []message
			for id := range uint64(size) {
				calls = append(calls, callOf(id, theHash, request(message{}.text(metadataID, "4f6b"))))
			}
			m := []byte(batch(calls...))
			e := exchange(b, connect(b, broker.socket("")))
			whole := 0 // the bytes of all replies to a batch
			turn := func() int {
				if err := e.stream.SendMsg(m); err != nil {
					b.Fatal(err)
				}
				for got := 0; ; {
					reply, err := receive(b, e.stream)
					if err != nil {
						b.Fatal(err)
					}
					if got += len(reply); got >= whole {
						return got
					}
				}
			}
			whole = turn()
			b.ReportAllocs()
			for b.Loop() {
				turn()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/call")
		})
	}
}
