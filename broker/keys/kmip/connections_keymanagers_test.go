// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers || interop

package kmip_test

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys/kmip"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
	"github.com/crypto-broker/crypto-broker-operator/test/keymanagers"
	"github.com/crypto-broker/crypto-broker-operator/test/kmipserver"
)

// loadTime is the duration of the load: a second, or the time that "make soak-keys" sets.
func loadTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("KEYS_LOAD_TIME")
	if text == "" {
		return time.Second
	}
	took, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("KEYS_LOAD_TIME: %v", err)
	}
	return took
}

func TestAfterALoadAServerHasAsManyConnectionsAsBefore(t *testing.T) {
	t.Parallel()
	keymanagers.EachKMIP(t, func(t *testing.T, product keymanagers.KMIP) {
		const clients, most = 12, 4
		servers := product.Start(t, 1)
		m := managerOf(t, servers, pool.Config[*kmip.Session]{Min: 1, Max: most, IdleTime: 400 * time.Millisecond})
		var key string
		do(t, m, pool.Once, func(ctx context.Context, s *kmip.Session) (err error) {
			key, err = s.CreateAES(ctx, 256)
			return err
		})
		awaitConnections(t, servers, m, 1)

		ended, end := context.WithTimeout(t.Context(), loadTime(t))
		defer end()
		var all sync.WaitGroup
		var reads atomic.Int64
		for range clients {
			all.Go(func() {
				for ended.Err() == nil {
					err := m.Do(t.Context(), pool.Repeatable, func(ctx context.Context, s *kmip.Session) error {
						material, err := s.Get(ctx, key)
						clear(material)
						return err
					})
					if err != nil {
						t.Errorf("a read failed: %v", err)
						return
					}
					reads.Add(1)
				}
			})
		}
		peak := 0
		for ended.Err() == nil {
			peak = max(peak, servers.Connections(t, 0))
			<-time.After(10 * time.Millisecond)
		}
		all.Wait()
		// A server notices a closed connection a moment later, when another connection may already be open.
		if peak < 2 || peak > 2*most {
			t.Errorf("the server had up to %d connections under load, want 2 to %d", peak, 2*most)
		}
		awaitConnections(t, servers, m, 1)
		t.Logf("%d reads in %s, over %d connections at most and 1 before and after", reads.Load(), loadTime(t), peak)
	})
}

// awaitConnections waits until the server and the pool have this many connections.
func awaitConnections(t *testing.T, servers *kmipserver.Servers, m *kmip.Manager, want int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; <-time.After(10 * time.Millisecond) {
		server, ours := servers.Connections(t, 0), m.Status()[0].Connections
		if server == want && ours == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server has %d connections and the pool %d, want %d", server, ours, want)
		}
	}
}

// A process has only one FIPS mode, so this test runs in a separate process.
func TestKeysOfAKeyManagerNeedNothingThatFIPSDoesNotApprove(t *testing.T) {
	t.Parallel()
	test := exec.CommandContext(t.Context(), os.Args[0], "-test.count=1", "-test.run=^TestAPrivateKeySignsInTheKeyManager$")
	test.Env = append(os.Environ(), "GODEBUG=fips140=only")
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("with GODEBUG=fips140=only: %v\n%s", err, out)
	}
}
