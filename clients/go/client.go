// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"context"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
)

// maxInFlight is how many calls may wait for their reply on the stream at one time.
const maxInFlight = 1024

// Client calls one broker. It is safe for use by several goroutines, and all its
// calls share one connection.
type Client struct {
	settings
	conn *grpc.ClientConn
	// connections counts the connections that were made, so that what was learned
	// of a broker can be forgotten with the connection to it.
	connections atomic.Uint64
	// withoutExchange is the count at which the broker did not have the stream.
	withoutExchange atomic.Uint64

	exchanges  exchanges
	algorithms interned
	warned     sync.Map // of Deprecation that were told

	// active counts the calls under way; closedBit is added once.
	active  atomic.Int64
	drained chan struct{} // closed once closed and not active
	drain   sync.Once
	// done ends what waits when the client stops waiting for its calls.
	done chan struct{}
	stop sync.Once
}

const closedBit = 1 << 62

// New makes a client. It connects when the first call is made, so that a broker
// that is not there yet is no error. The only errors are those of options.
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

// Close lets no more calls in, waits for those under way until ctx ends, then ends
// the ones that are left, with ErrClosed, and returns the context's error. Nothing
// of the client is left behind. Closing twice is no error.
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
		_ = c.conn.Close() // its only error is that it was closed before
	})
	<-c.drained
	c.exchanges.running.Wait()
	return err
}

// enter counts a call in; false after Close.
func (c *Client) enter() bool {
	if c.active.Add(1)&closedBit != 0 {
		c.leave()
		return false
	}
	return true
}

// leave counts a call out.
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

// tell calls the handler of deprecation warnings.
func (c *Client) tell(d *Deprecation) {
	if d == nil || c.deprecated == nil {
		return
	}
	if _, told := c.warned.LoadOrStore(*d, struct{}{}); !told {
		c.deprecated(*d)
	}
}

// interned keeps one string of each algorithm's name, so that replies need no new
// one.
type interned struct {
	names atomic.Pointer[map[string]string]
}

// maxInterned bounds what is kept. Brokers have some dozens of algorithms.
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
