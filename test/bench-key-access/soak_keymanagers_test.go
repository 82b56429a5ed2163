// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package benchkeyaccess

import (
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// soakRate is how many requests a second the soak sends.
const soakRate = 100

// settle is the longest time for connections and goroutines to become as few as before the load.
const settle = 3 * time.Minute

// grown has the resources that a service uses. The test compares them with the resources from before the load.
type grown struct {
	goroutines, descriptors, heap, resident float64
}

func usage(b *testing.B, s *service) grown {
	b.Helper()
	m := s.metrics(b)
	return grown{m["go_goroutines"], m["process_open_fds"], m["go_memstats_heap_inuse_bytes"], m["process_resident_memory_bytes"]}
}

// BenchmarkSoak sends 100 requests a second for SOAK_TIME. A tenth of the requests needs the key manager. No request may fail, and
// the service has to use as much afterwards as before.
func BenchmarkSoak(b *testing.B) {
	took, err := time.ParseDuration(os.Getenv("SOAK_TIME"))
	if err != nil {
		b.Fatalf("SOAK_TIME: %v, expected a duration such as 1h", err)
	}
	r := newRig(b, 1)
	read := newReader(b, r.from, false)
	services, stop := r.start(b, settings{services: 1, known: true, kept: true})
	defer stop()
	// The first load fills the caches of a service: the table of proofs, the connections and the heap.
	if found := read.steady(b, services[0], min(took/4, time.Minute)); found.failed > 0 {
		b.Fatalf("%d of %d requests failed before, for example: %s", found.failed, len(found.took), found.reason)
	}
	before := settled(b, services[0], grown{})
	found := read.steady(b, services[0], took)
	after := settled(b, services[0], before)
	b.Logf("%d requests in %s, %d failed; p50 %.1f ms, p95 %.1f ms, p99 %.1f ms; requests to the key manager %v", len(found.took), found.wall.Round(time.Second), found.failed, found.at(50), found.at(95), found.at(99), services[0].provider.requests)
	b.Logf("before: %.0f goroutines, %.0f descriptors, %.1f MiB heap, %.1f MiB resident", before.goroutines, before.descriptors, before.heap/(1<<20), before.resident/(1<<20))
	b.Logf("after:  %.0f goroutines, %.0f descriptors, %.1f MiB heap, %.1f MiB resident", after.goroutines, after.descriptors, after.heap/(1<<20), after.resident/(1<<20))
	if found.failed > 0 {
		b.Errorf("found %d failures, expected none, for example: %s", found.failed, found.reason)
	}
	if after.goroutines > before.goroutines+5 || after.descriptors > before.descriptors+5 {
		b.Errorf("found %+v, expected at most 5 goroutines and descriptors more than before: %+v", after, before)
	}
	if after.resident > 1.5*before.resident+(32<<20) {
		b.Errorf("found %.1f MiB resident, expected at most half more than before and 32 MiB: %.1f MiB", after.resident/(1<<20), before.resident/(1<<20))
	}
}

// settled waits until a service has as few goroutines and descriptors as before, at most for a time limit. It returns the resources
// that the service uses then.
func settled(b *testing.B, s *service, before grown) grown {
	b.Helper()
	client.CloseIdleConnections()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	found := usage(b, s)
	for began := time.Now(); time.Since(began) < settle; found = usage(b, s) {
		if before != (grown{}) && found.goroutines <= before.goroutines && found.descriptors <= before.descriptors {
			break
		}
		if before == (grown{}) && time.Since(began) > 20*time.Second {
			break
		}
		<-tick.C
	}
	return found
}

// steady sends requests at a steady rate, for ten requests of each file. Requests that are late are not left out.
func (r *reader) steady(b *testing.B, s *service, took time.Duration) *sample {
	b.Helper()
	found := &sample{}
	var mu sync.Mutex // guards found
	var running sync.WaitGroup
	var waiting atomic.Int64
	var files []file
	n := int(took.Seconds() * soakRate)
	start := time.Now()
	for i := range n {
		if i%(60*soakRate) == 0 {
			r.renew()
		}
		if i%soakRate == 0 {
			files = r.files(b, soakRate/10, false, s)
		}
		// A ticker would drop ticks on a busy machine, so the rate would be lower.
		if early := time.Until(start.Add(time.Duration(i) * time.Second / soakRate)); early > 0 {
			<-time.After(early)
		}
		if waiting.Add(1) > 10*soakRate {
			b.Fatalf("%d requests wait for an answer, so the service is too slow for %d a second", waiting.Load(), soakRate)
		}
		q := files[i%len(files)][0]
		running.Go(func() {
			defer waiting.Add(-1)
			p := r.prove(q)
			began := time.Now()
			err := p.send(b.Context())
			mu.Lock()
			defer mu.Unlock()
			found.took = append(found.took, time.Since(began))
			if err != nil {
				found.failed++
				found.reason = err.Error()
			}
		})
	}
	running.Wait()
	found.wall = time.Since(start)
	sortTimes(found)
	return found
}
