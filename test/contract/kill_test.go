// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/clientload"
)

// The load of the clients while the broker is killed. Each client runs with Exchange and without it.
const (
	killedEach    = time.Second
	kills         = 4
	killedCallers = 4
)

// TestNoClientLosesACallWhileTheBrokerIsKilledEachSecond lets all clients call one broker, which is killed and
// started again meanwhile.
func TestNoClientLosesACallWhileTheBrokerIsKilledEachSecond(t *testing.T) {
	b := startBroker(t, own)
	repository := filepath.Join("..", "..")
	clients, err := clientload.Clients(repository)
	if err != nil {
		t.Fatal(err)
	}
	type caller struct {
		name, way string
		program   *clientload.Program
	}
	var all []caller
	for _, name := range clients {
		for _, way := range []string{clientload.Unary, clientload.Exchange} {
			p, err := clientload.Start(context.Background(), repository, name, b.socket, false)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
			all = append(all, caller{name, way, p})
		}
	}
	// makeLoads lets all clients call at one time.
	makeLoads := func(took time.Duration) {
		var group sync.WaitGroup
		for _, c := range all {
			group.Go(func() {
				m, err := c.program.Make(clientload.Load{Way: c.way, Operation: clientload.HashData, Callers: killedCallers, Millis: took.Milliseconds()})
				if err != nil {
					t.Errorf("%s, %s: %v", c.name, c.way, err)
					return
				}
				if m.Failed > 0 || m.Done < killedCallers {
					t.Errorf("%s, %s: %d calls were lost and %d ended with a reply, for example: %s", c.name, c.way, m.Failed, m.Done, m.Error)
				}
			})
		}
		group.Wait()
	}
	makeLoads(time.Millisecond) // all are connected when the first kill comes
	var ended sync.WaitGroup
	ended.Go(func() { makeLoads((kills + 1) * killedEach) })
	tick := time.NewTicker(killedEach)
	defer tick.Stop()
	for range kills {
		<-tick.C
		b.kill(t)
		b.start(t)
	}
	ended.Wait()
	makeLoads(time.Millisecond) // all are connected again
}
