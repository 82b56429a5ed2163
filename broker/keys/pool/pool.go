// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// Conn is a connection to a key manager. One request uses it at a time.
type Conn interface {
	// Ping makes a request that costs the key manager little.
	Ping(ctx context.Context) error
	// Close ends the connection. It returns no error, because no caller could handle it.
	Close()
}

// Config configures a pool. A value of 0 stands for the default.
type Config[C Conn] struct {
	// Endpoints are the addresses of the servers, as Dial expects them. They serve the same
	// keys. The first one is the master, if there is one.
	Endpoints []string
	// Dial connects to an endpoint. An error that wraps [keys.ErrUnavailable] says that
	// another try may succeed.
	Dial func(ctx context.Context, endpoint string) (C, error)
	// Max is the largest number of connections to each endpoint. The default is 8.
	Max int
	// Min is the number of connections to each endpoint that stay open while they are not used.
	// It is at most Max. The default is 1, and a negative number stands for none.
	Min int
	// Lifetime is how long a connection is used. A tenth more or less is added at random, so
	// that not all connections end at one moment. The default is 30 minutes.
	Lifetime time.Duration
	// IdleTime is how long a connection may be idle. Then it is closed, or pinged if it is one
	// of the Min that stay open. The default is one minute.
	IdleTime time.Duration
	// DialTimeout and RequestTimeout bound how long an endpoint may take to connect and to
	// answer. The defaults are 5 and 10 seconds.
	DialTimeout, RequestTimeout time.Duration
	// RoundRobin makes requests that change nothing go to all endpoints in turn.
	RoundRobin bool
}

func (c *Config[C]) setDefaults() {
	replace := func(value *time.Duration, standard time.Duration) {
		if *value <= 0 {
			*value = standard
		}
	}
	replace(&c.Lifetime, 30*time.Minute)
	replace(&c.IdleTime, time.Minute)
	replace(&c.DialTimeout, 5*time.Second)
	replace(&c.RequestTimeout, 10*time.Second)
	if c.Max <= 0 {
		c.Max = 8
	}
	if c.Min == 0 {
		c.Min = 1
	}
	c.Min = min(max(0, c.Min), c.Max)
}

// Pool shares connections. It is safe for concurrent use.
type Pool[C Conn] struct {
	config    Config[C]
	endpoints []*endpoint[C]
	next      atomic.Uint64 // of RoundRobin
	stop      context.CancelFunc
	keeping   sync.WaitGroup
}

// New returns a pool, which connects when it is used, and soon afterwards to all endpoints.
func New[C Conn](config Config[C]) (*Pool[C], error) {
	if len(config.Endpoints) == 0 {
		return nil, errors.New("pool: found no endpoint, expected at least one")
	}
	config.setDefaults()
	ctx, stop := context.WithCancel(context.Background())
	p := &Pool[C]{config: config, stop: stop}
	for _, address := range config.Endpoints {
		p.endpoints = append(p.endpoints, newEndpoint(address, &p.config))
	}
	for _, e := range p.endpoints {
		p.keeping.Go(func() { e.keep(ctx) })
	}
	return p, nil
}

// Close closes all connections, once the requests that have begun are done. Later requests
// fail.
func (p *Pool[C]) Close() {
	p.stop()
	p.keeping.Wait()
	for _, e := range p.endpoints {
		e.conns.Close()
	}
}

// Kind says how often a request may be made.
type Kind bool

const (
	// Repeatable requests may be made more than once, because they change nothing.
	Repeatable Kind = false
	// Once requests must not be made more than once.
	Once Kind = true
)

// Do runs a request on a connection. request is called once for each try. It returns an error
// that wraps [keys.ErrUnavailable] if the endpoint did not answer, and the connection is
// closed then. Do returns the error of the last try, or ctx's error once ctx has ended.
func (p *Pool[C]) Do(ctx context.Context, kind Kind, request func(ctx context.Context, conn C) error) error {
	var last error
	for _, e := range p.order(kind) {
		sent, err := e.try(ctx, kind, request)
		switch {
		case ctx.Err() != nil && err != nil:
			return ctx.Err()
		case !mayRetry(err), sent && kind == Once:
			return err
		case last == nil || !errors.Is(err, errNotUsed):
			last = err
		}
	}
	if errors.Is(last, errNotUsed) {
		return fmt.Errorf("%w: %s did not answer lately", keys.ErrUnavailable, strings.Join(p.config.Endpoints, ", "))
	}
	return last
}

// mayRetry reports whether another try may succeed.
func mayRetry(err error) bool { return errors.Is(err, keys.ErrUnavailable) }

// order returns the endpoints in the order in which a request tries them. A request that changes nothing tries endpoints last that
// have left their callers without an answer.
func (p *Pool[C]) order(kind Kind) []*endpoint[C] {
	if kind == Once || len(p.endpoints) == 1 {
		return p.endpoints
	}
	ordered := p.byLoad()
	slices.SortStableFunc(ordered, func(a, b *endpoint[C]) int {
		switch first, second := a.unanswered.Load(), b.unanswered.Load(); {
		case first == second:
			return 0
		case first:
			return 1
		default:
			return -1
		}
	})
	return ordered
}

// byLoad returns the endpoints as the configuration says: in turn, or the less loaded of two first.
func (p *Pool[C]) byLoad() []*endpoint[C] {
	n := len(p.endpoints)
	ordered := make([]*endpoint[C], n)
	if p.config.RoundRobin {
		first := int(p.next.Add(1) % uint64(n))
		for i := range ordered {
			ordered[i] = p.endpoints[(first+i)%n]
		}
		return ordered
	}
	copy(ordered, p.endpoints)
	rand.Shuffle(n, func(i, j int) { ordered[i], ordered[j] = ordered[j], ordered[i] })
	if ordered[1].load() < ordered[0].load() {
		ordered[0], ordered[1] = ordered[1], ordered[0]
	}
	return ordered
}

// Status is the state of an endpoint.
type Status struct {
	Endpoint string
	// Usable reports whether the endpoint gets requests.
	Usable bool
	// Connections is the number of open connections, and Busy is the number of those with a
	// request.
	Connections, Busy int
	// Latency is a moving average of the time of requests. Before the first request it is the
	// time of a ping, or 0 if there was none.
	Latency time.Duration
	// Reach is the result of the last contact. Failure is the reason why the endpoint did not
	// serve then. Failure is also set if the endpoint can be reached and refuses the credentials.
	Reach   Reach
	Failure Failure
	// Version is the version that the server has reported, or empty.
	Version string
	// Requests are counted from when the pool was made.
	Requests Requests
}

// Status returns the state of each endpoint, in the order of the configuration.
func (p *Pool[C]) Status() []Status {
	all := make([]Status, len(p.endpoints))
	for i, e := range p.endpoints {
		all[i] = e.status()
	}
	return all
}
