// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"context"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
)

// maxInFlight is the maximum number of calls that may wait for their reply on the stream at one
// time.
const maxInFlight = 1024

// Client calls one broker. It is safe for use by several goroutines, and all its
// calls share one connection.
type Client struct {
	settings
	conn *grpc.ClientConn
	// connections is the number of connections that were made. It is the number of the current
	// connection.
	connections atomic.Uint64
	// withoutExchange is the number of a connection whose broker does not have the stream,
	// 0 for none.
	withoutExchange atomic.Uint64

	exchanges  exchanges
	algorithms interned
	warned     sync.Map // each Deprecation for which the handler was called

	// active is the number of calls that have begun and not ended. Close adds closedBit once.
	active  atomic.Int64
	drained chan struct{} // closed when the client is closed and active is 0
	drain   sync.Once
	// done is closed when Close stops waiting for calls. Calls that wait then end.
	done chan struct{}
	stop sync.Once
}

const closedBit = 1 << 62

// New returns a client. The client connects at its first call, so New does not fail if the
// broker is not running yet. New returns an error only for invalid options.
func New(options ...Option) (*Client, error) {
	settings, err := newSettings(options)
	if err != nil {
		return nil, err
	}
	c := &Client{settings: settings, drained: make(chan struct{}), done: make(chan struct{})}
	c.exchanges.slots = make(chan struct{}, maxInFlight)
	if c.conn, err = c.dial(); err != nil {
		return nil, err
	}
	return c, nil
}

// Close lets new calls fail with ErrClosed, and waits for calls that have begun. If ctx ends
// before they do, they fail with ErrClosed, and Close returns the error of ctx. No goroutine
// and no connection is left. Close may be called again.
func (c *Client) Close(ctx context.Context) error {
	if c.active.Or(closedBit)&^closedBit == 0 {
		c.drain.Do(func() { close(c.drained) })
	}
	var err error
	select {
	case <-c.drained:
	case <-ctx.Done():
		select {
		case <-c.drained:
		default:
			err = ctx.Err()
		}
	}
	c.stop.Do(func() {
		close(c.done)
		_ = c.conn.Close() // fails only if the connection is closed already
	})
	<-c.drained
	c.exchanges.running.Wait()
	return err
}

// enter counts a call that begins. It reports false after Close.
func (c *Client) enter() bool {
	if c.active.Add(1)&closedBit != 0 {
		c.leave()
		return false
	}
	return true
}

// leave counts a call that has ended.
func (c *Client) leave() {
	if c.active.Add(-1) == closedBit {
		c.drain.Do(func() { close(c.drained) })
	}
}

// stopped reports whether Close has stopped waiting.
func (c *Client) stopped() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// tell calls the handler of deprecation warnings, once for each different warning.
func (c *Client) tell(d *Deprecation) {
	if d == nil || c.deprecated == nil {
		return
	}
	if _, told := c.warned.LoadOrStore(*d, struct{}{}); !told {
		c.deprecated(*d)
	}
}

// interned has one string for the name of each algorithm, so that replies do not allocate it.
type interned struct {
	names atomic.Pointer[map[string]string]
}

// maxInterned is the maximum number of names that are kept. Brokers have some dozens of
// algorithms.
const maxInterned = 256

func (i *interned) of(name []byte) string {
	known := i.names.Load()
	if known != nil {
		if found, ok := (*known)[string(name)]; ok {
			return found
		}
	}
	made := string(name)
	next := map[string]string{made: made}
	if known != nil {
		if len(*known) >= maxInterned {
			return made
		}
		for k, v := range *known {
			next[k] = v
		}
	}
	i.names.CompareAndSwap(known, &next)
	return made
}
