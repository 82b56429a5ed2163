// SPDX-License-Identifier: Apache-2.0

package cryptobroker_test

import (
	"fmt"
	"sync"
	"testing"

	cryptobroker "github.com/crypto-broker/crypto-broker-operator/clients/go"
)

// BenchmarkHashData measures a small digest by a broker in a process of its own,
// for callers that each wait for their reply. Allocations are the client's.
func BenchmarkHashData(b *testing.B) {
	broker := startBroker(b)
	for _, way := range []struct {
		name    string
		options []cryptobroker.Option
	}{{"unary", []cryptobroker.Option{cryptobroker.WithoutExchange()}}, {"exchange", nil}} {
		for _, callers := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/callers=%d", way.name, callers), func(b *testing.B) {
				client := newClient(b, broker.socket, way.options...)
				ctx := withTimeout(b)
				request := cryptobroker.HashDataRequest{Profile: "Default", Input: make([]byte, 32)}
				// Connecting is not measured.
				if _, err := client.HashData(ctx, request); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				b.ResetTimer()
				var group sync.WaitGroup
				for i := range callers {
					group.Go(func() {
						for n := i; n < b.N; n += callers {
							if _, err := client.HashData(ctx, request); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				group.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
			})
		}
	}
}
