// SPDX-License-Identifier: Apache-2.0

//go:build process

package service_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// counting is a key manager that counts its connections. It answers each byte with a byte,
// after a millisecond.
type counting struct {
	listener         net.Listener
	open, most, made atomic.Int64
	requests         atomic.Int64
}

func startCounting(t *testing.T) *counting {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{listener: listener}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			c.made.Add(1)
			open := c.open.Add(1)
			for most := c.most.Load(); open > most && !c.most.CompareAndSwap(most, open); most = c.most.Load() {
			}
			serving.Go(func() {
				defer c.open.Add(-1)
				defer func() { _ = conn.Close() }() // the client may have closed it
				one := make([]byte, 1)
				for {
					if _, err := io.ReadFull(conn, one); err != nil {
						return
					}
					c.requests.Add(1)
					<-time.After(time.Millisecond)
					if _, err := conn.Write(one); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close() // the cleanup closes it once
		serving.Wait()
	})
	return c
}

// wire is a connection to a counting key manager.
type wire struct{ net.Conn }

func (w wire) Ping(ctx context.Context) error { return w.ask(ctx) }
func (w wire) Close()                         { _ = w.Conn.Close() } // the manager may have closed it

func (w wire) ask(ctx context.Context) error {
	if until, ok := ctx.Deadline(); ok {
		if err := w.SetDeadline(until); err != nil {
			return err
		}
	}
	one := []byte{1}
	if _, err := w.Write(one); err != nil {
		return fmt.Errorf("%w: %w", keys.ErrUnavailable, err)
	}
	if _, err := io.ReadFull(w, one); err != nil {
		return fmt.Errorf("%w: %w", keys.ErrUnavailable, err)
	}
	return nil
}

// pooled is an AES key that stays in the counting key manager.
type pooled struct{ pool *pool.Pool[wire] }

func (pooled) KeySize() int { return 32 }

func (p pooled) SealRandom(ctx context.Context, plaintext, _ []byte) (nonce, ciphertext, tag []byte, err error) {
	err = p.pool.Do(ctx, pool.Repeatable, func(ctx context.Context, w wire) error { return w.ask(ctx) })
	return make([]byte, 12), make([]byte, len(plaintext)), make([]byte, 16), err
}

func (pooled) Open(context.Context, []byte, []byte, []byte, []byte) ([]byte, error) {
	return nil, keys.ErrInvalidCiphertext
}

func TestAThousandBrokersShareTheConnectionsOfTwoReplicas(t *testing.T) {
	const brokers, most, rounds = 1000, 8, 2
	manager := startCounting(t)
	replicas := make([]*installation, 2)
	for i := range replicas {
		replicas[i] = install(t)
		connections, err := pool.New(pool.Config[wire]{
			Endpoints: []string{manager.listener.Addr().String()}, Max: most,
			Dial: func(ctx context.Context, endpoint string) (wire, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", endpoint)
				return wire{conn}, err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(connections.Close)
		replicas[i].manager.addKey("orders", func() (*keys.Key, error) { return keys.NewRemoteSymmetric("orders", pooled{connections}), nil })
	}
	var all sync.WaitGroup
	var failed atomic.Int64
	connected := make(chan struct{}, brokers)
	busy := make(chan struct{}, 60) // all brokers of this test share one pod, which has a limit of requests
	again := make(chan struct{})
	for i := range brokers {
		replica := replicas[i%2]
		client := replica.client(t)
		all.Go(func() {
			for round := range rounds {
				busy <- struct{}{}
				key, err := client.Key(context.Background(), named("orders", profile.OpEncryptData))
				if err == nil {
					_, _, _, err = key.Cipher(context.Background()).SealRandom([]byte("m"), nil)
				}
				<-busy
				if err != nil {
					failed.Add(1)
					t.Errorf("broker %d: %v", i, err)
				}
				if round == 0 {
					connected <- struct{}{}
					<-again
				}
			}
		})
	}
	for range brokers {
		<-connected
	}
	held := replicas[0].server.Load().Connections + replicas[1].server.Load().Connections
	close(again)
	all.Wait()
	t.Logf("%d connections of brokers, at most %d connections to the key manager, %d made, %d requests, %d failed",
		held, manager.most.Load(), manager.made.Load(), manager.requests.Load(), failed.Load())
	if held != brokers {
		t.Errorf("the gateways had %d connections of brokers, want %d at one time", held, brokers)
	}
	if got := manager.most.Load(); got > 2*most {
		t.Errorf("the key manager had %d connections at one time, want at most %d: %d for each replica", got, 2*most, most)
	}
	if got := manager.requests.Load(); got < brokers*rounds {
		t.Errorf("the key manager had %d requests, want at least %d", got, brokers*rounds)
	}
}
