// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/mem"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/clock"
)

func TestNoMoreConnectionsOfACallerAreReadAtOneTimeThanItsGateLetsIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that no turn appears to last longer than a second
		const turns, connections, rounds = 2, 16, 200
		c := callerOfTest(connections, 1, 1<<20)
		c.gate = newGate(turns)
		var inside, most atomic.Int64
		var all sync.WaitGroup
		for range connections {
			all.Go(func() {
				turn := c.NewTurn()
				for range rounds {
					turn.Begin()
					now := inside.Add(1)
					for {
						seen := most.Load()
						if now <= seen || most.CompareAndSwap(seen, now) {
							break
						}
					}
					runtime.Gosched()
					inside.Add(-1)
					turn.End()
				}
			})
		}
		all.Wait()
		if got := most.Load(); got > turns {
			t.Errorf("%d were inside at one time, want at most %d", got, turns)
		}
		for range turns {
			if !c.gate.tryEnter(new(Turn)) {
				t.Error("a turn is not given back")
			}
		}
		if c.gate.tryEnter(new(Turn)) {
			t.Error("there is a turn too many")
		}
	})
}

func TestAConnectionThatCannotBeWrittenToLetsOthersThrough(t *testing.T) {
	c := callerOfTest(3, 10, 1<<20)
	c.gate = newGate(1)
	pool := mem.DefaultBufferPool()
	stalled, other := readyConn(t, c), readyConn(t, c)
	for _, conn := range []*readyPair{stalled, other} {
		conn.write(t)
	}
	stalled.read(t, pool) // and gRPC does not continue, because a write blocks
	stalled.writing.Store(clock.Nanos(time.Now()))
	other.read(t, pool)
	stalled.writing.Store(0)
	if err := stalled.Close(); err != nil {
		t.Error(err)
	}
	if c.gate.tryEnter(new(Turn)) {
		t.Error("the connection that lost its turn gave back the turn of the other one")
	}
}

func TestAConnectionGivesItsTurnBackWhileThereIsNothingToRead(t *testing.T) {
	c := callerOfTest(3, 10, 1<<20)
	c.gate = newGate(1)
	pool := mem.DefaultBufferPool()
	idle, other := readyConn(t, c), readyConn(t, c)
	idle.write(t)
	idle.read(t, pool)
	ended := make(chan error, 1)
	go func() {
		_, _, err := idle.ReadOnReady(1<<10, pool)
		ended <- err
	}()
	awaitStack(t, "waitRead")
	other.write(t)
	other.read(t, pool)
	if !other.reading.Load() {
		t.Error("a connection without anything to read keeps the turn")
	}
	if err := idle.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("a read of a closed connection ended without an error")
	}
}

// readyPair is a connection that is read as gRPC does, and its client.
type readyPair struct {
	*Conn
	client net.Conn
}

func readyConn(t *testing.T, from *Caller) *readyPair {
	t.Helper()
	conn, client := pairOfTest(t, from)
	if err := conn.ready.open(conn.UnixConn); err != nil {
		t.Fatal(err)
	}
	return &readyPair{conn, client}
}

func (p *readyPair) write(t *testing.T) {
	t.Helper()
	if _, err := p.client.Write([]byte("something")); err != nil {
		t.Fatal(err)
	}
}

func (p *readyPair) read(t *testing.T, pool mem.BufferPool) {
	t.Helper()
	buffer, n, err := p.ReadOnReady(1<<10, pool)
	if err != nil || n == 0 {
		t.Fatalf("got %d bytes and %v", n, err)
	}
	pool.Put(buffer)
}
