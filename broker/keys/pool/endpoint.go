// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/puddle/v2"
	"github.com/sony/gobreaker/v2"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

const (
	// tripAfter failures in a row stop requests to an endpoint for tripTime.
	tripAfter = 3
	tripTime  = 10 * time.Second
	// checkAfter is how long a connection may be idle before it is pinged for a request that
	// must not be made twice. The server may have closed it meanwhile.
	checkAfter = time.Second
	// A caller who gives up after patience times the time that the endpoint usually takes was not too hasty, if the endpoint has
	// answered nobody meanwhile. After minPatience other endpoints are tried first, and after fairTime the endpoint has failed.
	patience    = 8
	minPatience = 100 * time.Millisecond
	fairTime    = time.Second
	// latencyWeight is the weight of the last request in the moving average of latency.
	latencyWeight = 0.2
)

// errNotUsed says that an endpoint gets no requests for now.
var errNotUsed = fmt.Errorf("%w: the endpoint did not answer lately", keys.ErrUnavailable)

// errTimedOut says that an endpoint did not answer within the time of the configuration.
var errTimedOut = fmt.Errorf("%w: no answer in time", keys.ErrUnavailable)

// ahead is the key of a value in contexts. The value marks a connection that is opened before a
// request needs it.
type ahead struct{}

// endpoint is one server with its connections.
type endpoint[C Conn] struct {
	address string
	config  *Config[C]
	conns   *puddle.Pool[*pooled[C]]
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	// inFlight is the number of requests that the endpoint has. latency is a moving average of
	// the time of requests in nanoseconds.
	inFlight, latency atomic.Int64
	// answers counts what the endpoint has answered. unanswered says that a caller has waited for long and given up, and that the
	// endpoint has not answered anything since. Other endpoints are tried first then.
	answers    atomic.Uint64
	unanswered atomic.Bool
	contact    contact
}

// pooled is a connection in a pool.
type pooled[C Conn] struct {
	conn C
	// until is when the lifetime of the connection ends.
	until time.Time
}

func newEndpoint[C Conn](address string, config *Config[C]) *endpoint[C] {
	e := &endpoint[C]{address: address, config: config}
	e.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:      tripTime,
		ReadyToTrip:  func(counts gobreaker.Counts) bool { return counts.ConsecutiveFailures >= tripAfter },
		IsSuccessful: func(err error) bool { return !mayRetry(err) },
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) },
	})
	conns, err := puddle.NewPool(&puddle.Config[*pooled[C]]{
		Constructor: e.dial,
		Destructor:  func(c *pooled[C]) { c.conn.Close() },
		MaxSize:     int32(min(config.Max, 1<<16)), //nolint:gosec // bounded
	})
	if err != nil {
		panic("pool: " + err.Error()) // MaxSize is at least 1
	}
	e.conns = conns
	return e
}

func (e *endpoint[C]) dial(ctx context.Context) (*pooled[C], error) {
	ctx, cancel := context.WithTimeout(ctx, e.config.DialTimeout)
	defer cancel()
	conn, err := e.config.Dial(ctx, e.address)
	if err == nil && ctx.Value(ahead{}) != nil {
		if err = e.ping(ctx, conn); err != nil {
			conn.Close()
			err = fmt.Errorf("%w: %s does not answer a ping: %w", keys.ErrUnavailable, e.address, err)
		}
	}
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, keys.ErrUnavailable) {
			err = fmt.Errorf("%w: %s did not connect within %s", errTimedOut, e.address, e.config.DialTimeout)
		}
		if !errors.Is(context.Cause(ctx), context.Canceled) {
			e.contact.failed(err)
		}
		return nil, err
	}
	tenth := e.config.Lifetime / 10
	return &pooled[C]{conn: conn, until: time.Now().Add(e.config.Lifetime - tenth + rand.N(2*tenth+1))}, nil
}

// load returns the time that a request will probably take. The endpoint with the smaller load
// gets the request.
func (e *endpoint[C]) load() int64 { return e.latency.Load() * (e.inFlight.Load() + 1) }

// try makes a request. It reports whether the request may have reached the server.
func (e *endpoint[C]) try(ctx context.Context, kind Kind, request func(context.Context, C) error) (sent bool, err error) {
	done, err := e.breaker.Allow()
	if err != nil {
		return false, errNotUsed
	}
	e.inFlight.Add(1)
	began, answers := time.Now(), e.answers.Load()
	defer func() {
		e.inFlight.Add(-1)
		if ctx.Err() != nil && err != nil {
			done(e.givenUp(kind, time.Since(began), answers))
			return
		}
		done(err)
		e.contact.ended(err, time.Since(began))
	}()
	for {
		held, err := e.acquire(ctx, kind)
		if err != nil {
			return false, err
		}
		older := held.CreationTime().Before(began)
		err = e.run(ctx, held, request)
		if kind == Once || !older || !errors.Is(err, keys.ErrUnavailable) || ctx.Err() != nil {
			return true, err
		}
		// The server may have closed this connection and others while they were idle.
		e.conns.Reset()
	}
}

// givenUp returns how a request ended whose caller has given up after a time. answers is what the endpoint had answered when the
// request began. Impatient callers must not stop the requests of others.
func (e *endpoint[C]) givenUp(kind Kind, waited time.Duration, answers uint64) error {
	if kind == Once || e.answers.Load() != answers || waited < max(minPatience, patience*time.Duration(e.latency.Load())) {
		return context.Canceled
	}
	e.unanswered.Store(true)
	if waited < fairTime {
		return context.Canceled
	}
	e.contact.failed(errTimedOut)
	return errTimedOut
}

// acquire returns a connection whose lifetime has not ended. For a request that must not be made
// twice, the connection has just answered a ping.
func (e *endpoint[C]) acquire(ctx context.Context, kind Kind) (*puddle.Resource[*pooled[C]], error) {
	for {
		held, err := e.conns.Acquire(ctx)
		switch {
		case errors.Is(err, puddle.ErrClosedPool):
			return nil, fmt.Errorf("%w: the pool of connections to %s is closed", keys.ErrUnavailable, e.address)
		case err != nil:
			return nil, err
		case time.Now().After(held.Value().until):
			held.Destroy()
		case kind == Once && held.IdleDuration() > checkAfter && !e.pongs(ctx, held.Value().conn):
			held.Destroy()
		default:
			return held, nil
		}
	}
}

// pongs reports whether the server answers a ping on a connection.
func (e *endpoint[C]) pongs(ctx context.Context, conn C) bool {
	ctx, cancel := context.WithTimeout(ctx, e.config.DialTimeout)
	defer cancel()
	return e.ping(ctx, conn) == nil
}

// ping makes a request that costs the server little, and notes that it was answered.
func (e *endpoint[C]) ping(ctx context.Context, conn C) error {
	began := time.Now()
	err := conn.Ping(ctx)
	if err == nil {
		e.contact.pinged.Store(int64(max(1, time.Since(began))))
		e.answered(conn)
	}
	return err
}

// run makes a request on a connection. Then it returns the connection to the pool, or closes the
// connection if it is unusable.
func (e *endpoint[C]) run(ctx context.Context, held *puddle.Resource[*pooled[C]], request func(context.Context, C) error) error {
	limited, cancel := context.WithTimeout(ctx, e.config.RequestTimeout)
	defer cancel()
	broken := true
	defer func() {
		if broken { // even if request panics
			held.Destroy()
		} else {
			held.Release()
		}
	}()
	began := time.Now()
	err := request(limited, held.Value().conn)
	switch {
	case err != nil && ctx.Err() != nil:
		return err // the reply may still come
	case err != nil && limited.Err() != nil:
		return fmt.Errorf("%w: %s did not answer within %s", errTimedOut, e.address, e.config.RequestTimeout)
	}
	broken = errors.Is(err, keys.ErrUnavailable)
	if !broken {
		e.answered(held.Value().conn)
	}
	if fragile, ok := any(held.Value().conn).(Fragile); ok && fragile.Broken() {
		broken = true
	}
	if err == nil {
		e.note(time.Since(began))
	}
	return err
}

// answered notes that the server has answered on a connection.
func (e *endpoint[C]) answered(conn C) {
	e.answers.Add(1)
	e.unanswered.Store(false)
	e.contact.answered(conn)
}

// note adds the time of a request to the average.
func (e *endpoint[C]) note(took time.Duration) {
	for {
		old := e.latency.Load()
		average := int64(took)
		if old != 0 {
			average = old + int64(latencyWeight*float64(int64(took)-old))
		}
		if e.latency.CompareAndSwap(old, average) {
			return
		}
	}
}

// keep maintains the connections until ctx ends: it closes old and idle ones, pings the others,
// and opens new ones where there are too few.
func (e *endpoint[C]) keep(ctx context.Context) {
	tick := time.NewTicker(max(time.Millisecond, e.config.IdleTime/4))
	defer tick.Stop()
	for {
		e.tidy(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (e *endpoint[C]) tidy(ctx context.Context) {
	now := time.Now()
	left := int(e.conns.Stat().TotalResources())
	var quiet []*puddle.Resource[*pooled[C]]
	for _, held := range e.conns.AcquireAllIdle() {
		idle := held.IdleDuration() > e.config.IdleTime || e.unanswered.Load()
		switch {
		case now.After(held.Value().until), idle && left > e.config.Min:
			left--
			held.Destroy()
		case idle:
			quiet = append(quiet, held) // this connection may take a while to answer, so the others come first
		default:
			held.ReleaseUnused()
		}
	}
	for _, held := range quiet {
		if e.pongs(ctx, held.Value().conn) {
			held.Release()
			continue
		}
		left--
		held.Destroy()
	}
	for ; left < e.config.Min && ctx.Err() == nil; left++ {
		if !e.openAhead(ctx) {
			return
		}
	}
}

// openAhead opens a connection, and reports whether the server answers on it. If the endpoint
// gets no requests for now, this connection decides whether it gets requests again.
func (e *endpoint[C]) openAhead(ctx context.Context) bool {
	done := func(error) {}
	if e.breaker.State() != gobreaker.StateClosed {
		var err error
		if done, err = e.breaker.Allow(); err != nil {
			return false
		}
	}
	err := e.conns.CreateResource(context.WithValue(ctx, ahead{}, true))
	done(err)
	return err == nil
}

func (e *endpoint[C]) status() Status {
	stat := e.conns.Stat()
	s := Status{
		Endpoint:    e.address,
		Usable:      e.breaker.State() == gobreaker.StateClosed,
		Connections: int(stat.TotalResources() - stat.ConstructingResources()),
		Busy:        int(stat.AcquiredResources()),
		Latency:     time.Duration(e.latency.Load()),
	}
	e.contact.fill(&s)
	return s
}
