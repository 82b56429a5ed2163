// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
)

func TestABrokerIsSmall(t *testing.T) {
	const (
		// The benchmark has the figures: 5 MiB, and 9 to 15 with the pages of the program. How
		// many of these are there depends on the system's cache of files, and the test's
		// program is larger: 21 MiB were seen.
		idle        = 8 << 20
		idleWhole   = 32 << 20
		connections = 100
		// Usually 40 MiB, and more where the collector of memory waits for a processor.
		busy = 128 << 20
	)
	at := newPlace(t, "sha-256")
	broker := start(t, at.args()...)
	status := broker.listening()
	if _, err := hashes(t, connect(t, at.socket(""))); err != nil {
		t.Fatal(err)
	}
	own, all := broker.resident("RssAnon:"), broker.resident("VmRSS:")
	t.Logf("idle: %d bytes, %d with the program", own, all)
	if own > idle {
		t.Errorf("idle it holds %d bytes beside the program, expected at most %d", own, idle)
	}

	if all > idleWhole {
		t.Errorf("idle it holds %d bytes with the program, expected at most %d", all, idleWhole)
	}

	if _, metrics := get(t, status, "/metrics"); !strings.Contains(metrics, "\ngo_gc_duration_seconds_count 0\n") {
		t.Error("it collected garbage already, which makes pages of the program resident")
	}

	var group sync.WaitGroup
	for range connections {
		client := v0.NewCryptoGrpcClient(connect(t, at.socket("")))
		group.Go(func() {
			request := &v0.HashDataRequest{Profile: "Default", Input: make([]byte, 4<<10)}
			for range 200 {
				if _, err := client.HashData(t.Context(), request, grpc.WaitForReady(true)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	most := broker.mostResident()
	t.Logf("busy: %d bytes with the program", most)
	if most > busy {
		t.Errorf("with %d busy connections it held %d bytes, expected at most %d", connections, most, busy)
	}
	broker.stop()
}
