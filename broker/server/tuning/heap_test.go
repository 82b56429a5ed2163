// SPDX-License-Identifier: Apache-2.0

package tuning_test

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/tuning"
)

func value(name string) uint64 {
	samples := []metrics.Sample{{Name: name}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}

func TestTheCollectorIsEasedUntilItsFirstTurnAndByTheReserveFromThenOn(t *testing.T) {
	t.Setenv("GOGC", "")
	tuning.EaseCollector(0)
	if got := value("/gc/gogc:percent"); got != 500 {
		t.Errorf("at the start GOGC is %d, want 500: 20 MiB, of which 12 are the reserve", got)
	}
	runtime.GC()
	for deadline := time.Now().Add(20 * time.Second); value("/gc/gogc:percent") != 100; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("after the first collection GOGC is %d, want 100", value("/gc/gogc:percent"))
		}
	}
	if goal := value("/gc/heap/goal:bytes"); goal < 24<<20 {
		t.Errorf("the next collection begins at %d bytes, want twice the reserve of 12 MiB", goal)
	}
}

func TestTheFirstCollectionComesAfterEightMiBBesideTheReserve(t *testing.T) {
	t.Setenv("GOGC", "")
	tuning.EaseCollector(32 << 20)
	if got := value("/gc/gogc:percent"); got != 300 {
		t.Errorf("with a limit of 32 MiB GOGC is %d, want 300: 12 MiB, of which 4 are the reserve", got)
	}
}

func TestWhoeverSetsGOGCDecidesAlone(t *testing.T) {
	t.Setenv("GOGC", "50")
	before := value("/gc/gogc:percent")
	tuning.EaseCollector(0)
	if got := value("/gc/gogc:percent"); got != before {
		t.Errorf("GOGC went from %d to %d", before, got)
	}
}
