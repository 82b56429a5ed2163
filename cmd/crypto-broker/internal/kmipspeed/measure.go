// SPDX-License-Identifier: Apache-2.0

package kmipspeed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys/kmip"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
)

// Limits of a measurement.
const (
	// MaxClients is the largest number of clients.
	MaxClients = 10
	// MaxRepeat is the largest number of operations of a client.
	MaxRepeat = 100_000
)

// Config says what to measure.
type Config struct {
	Servers []string
	// TLS has the client's certificate and the authorities of the servers. Reused connections may
	// resume a TLS session, others never do.
	TLS tlsprovider.Config
	// Clients are the numbers of clients that work at the same time, one measurement each.
	Clients []int
	// Repeat is the number of operations that each client makes in a measurement.
	Repeat int
	// Reuse lists the ways to use connections: true for reused connections, false for a new
	// connection for each operation.
	Reuse []bool
	// Operations are measured in this order, see [Operations].
	Operations []Operation
	// Progress is called before each measurement. It may be nil.
	Progress func(what string)

	// kept makes reused connections, and single makes connections for one operation.
	kept, single *tlsprovider.Client
}

// connect makes the clients.
func (c *Config) connect() (err error) {
	if c.single, err = tlsprovider.New(c.TLS); err != nil {
		return fmt.Errorf("certificates and key: %w", err)
	}
	resuming := c.TLS
	resuming.Sessions = len(c.Servers)
	c.kept, err = tlsprovider.New(resuming)
	return err
}

// Operation is an operation that is measured.
type Operation struct {
	// Name is the name in tables. Flag is the name of the command's flag.
	Name, Flag string
	kind       pool.Kind
	run        func(ctx context.Context, s *kmip.Session, of *measured) error
}

// Operations are all operations that can be measured.
var Operations = []Operation{
	{"get AES-256", "get", pool.Repeatable, func(ctx context.Context, s *kmip.Session, of *measured) error {
		key, err := s.Get(ctx, of.key)
		clear(key)
		return err
	}},
	{"wrap AES-256", "wrap", pool.Repeatable, func(ctx context.Context, s *kmip.Session, of *measured) error {
		_, err := s.GetWrapped(ctx, of.key, of.wrapping)
		return err
	}},
	{"create AES-256", "create", pool.Once, func(ctx context.Context, s *kmip.Session, of *measured) error {
		id, err := s.CreateAES(ctx, 256)
		of.made(id)
		return err
	}},
	{"create RSA-2048", "create-rsa", pool.Once, func(ctx context.Context, s *kmip.Session, of *measured) error {
		private, public, err := s.CreateRSA(ctx, 2048)
		of.made(private, public)
		return err
	}},
	{"create EC P-256", "create-ecc", pool.Once, func(ctx context.Context, s *kmip.Session, of *measured) error {
		private, public, err := s.CreateP256(ctx)
		of.made(private, public)
		return err
	}},
}

// Row is the result of one measurement.
type Row struct {
	Operation string
	Clients   int
	Reuse     bool
	// Done is the number of operations that succeeded, in Took.
	Done int
	Took time.Duration
	// Median and P99 are times of one operation.
	Median, P99 time.Duration
	// Failed is the number of operations that failed, and First is the error of one of them.
	Failed int
	First  error
}

// perMinute returns how many operations a minute were made.
func (r *Row) perMinute() float64 { return float64(r.Done) / r.Took.Minutes() }

// measured has the keys of a measurement.
type measured struct {
	// key is read and wrapped, and wrapping wraps it.
	key, wrapping string

	mu   sync.Mutex
	keys []string // to destroy
}

func (m *measured) made(ids ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		if id != "" {
			m.keys = append(m.keys, id)
		}
	}
}

// Measure makes all measurements. It destroys the keys that it made, even after an error. An
// error means that nothing could be measured, or that keys could not be destroyed. The rows count
// operations that fail.
func Measure(ctx context.Context, config Config) (rows []Row, err error) {
	if config.Progress == nil {
		config.Progress = func(string) {}
	}
	if err := config.connect(); err != nil {
		return nil, err
	}
	manager, err := kmip.New(kmip.Config{
		Servers: config.Servers, TLS: config.kept,
		Pool: pool.Config[*kmip.Session]{Max: MaxClients, RequestTimeout: kmip.CreateTimeout},
	})
	if err != nil {
		return nil, err
	}
	defer manager.Close()
	var of measured
	defer func() {
		config.Progress(fmt.Sprintf("destroying %d keys", len(of.keys)))
		err = errors.Join(err, destroy(of.keys, func(ctx context.Context, id string) error {
			return manager.Do(ctx, pool.Once, func(ctx context.Context, s *kmip.Session) error { return s.Destroy(ctx, id) })
		}))
	}()
	if err := prepare(ctx, manager, &of); err != nil {
		return nil, err
	}
	for _, operation := range config.Operations {
		for _, clients := range config.Clients {
			for _, reuse := range config.Reuse {
				row := Row{Operation: operation.Name, Clients: clients, Reuse: reuse}
				config.Progress(fmt.Sprintf("%s: %d clients with %d operations each, %s", row.Operation, clients, config.Repeat, row.connections()))
				row.measure(ctx, config, operation, &of)
				if ctx.Err() != nil {
					return rows, ctx.Err()
				}
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

func (r *Row) connections() string {
	if r.Reuse {
		return "connections used again"
	}
	return "a connection for each"
}

// prepare makes the keys that are read and wrapped.
func prepare(ctx context.Context, manager *kmip.Manager, of *measured) error {
	return manager.Do(ctx, pool.Once, func(ctx context.Context, s *kmip.Session) (err error) {
		if of.key, err = s.CreateAES(ctx, 256); err != nil {
			return err
		}
		of.made(of.key)
		of.wrapping, err = s.CreateWrappingAES(ctx, 256)
		of.made(of.wrapping)
		return err
	})
}

const (
	// destroyTime is how long it may take to destroy a key.
	destroyTime = 10 * time.Second
	// maxFailures is the number of keys that destroy tries one after the other without success.
	maxFailures = 10
)

// destroy destroys keys, even after the context of the measurement has ended. It gives up if no key
// can be destroyed any more.
func destroy(ids []string, one func(ctx context.Context, id string) error) error {
	left, failures := 0, 0
	var first error
	for i, id := range ids {
		ctx, cancel := context.WithTimeout(context.Background(), destroyTime)
		err := one(ctx, id)
		cancel()
		if err == nil {
			failures = 0
			continue
		}
		left, first = left+1, cmp.Or(first, err)
		if failures++; failures == maxFailures {
			left += len(ids) - i - 1
			break
		}
	}
	if left > 0 {
		return fmt.Errorf("%d of the %d keys that were made are left: %w", left, len(ids), first)
	}
	return nil
}

// measure lets all clients make their operations.
func (r *Row) measure(ctx context.Context, config Config, operation Operation, of *measured) {
	do, done, err := connect(ctx, config, r)
	if err != nil {
		r.Failed, r.First = r.Clients*config.Repeat, err
		return
	}
	defer done()
	var all sync.WaitGroup
	times := make([][]time.Duration, r.Clients)
	failures := make([][]error, r.Clients)
	began := time.Now()
	for client := range r.Clients {
		all.Go(func() {
			for range config.Repeat {
				if ctx.Err() != nil {
					return
				}
				began := time.Now()
				err := do(operation.kind, func(ctx context.Context, s *kmip.Session) error { return operation.run(ctx, s, of) })
				if err != nil {
					failures[client] = append(failures[client], err)
					continue
				}
				times[client] = append(times[client], time.Since(began))
			}
		})
	}
	all.Wait()
	r.Took = time.Since(began)
	sorted := slices.Concat(times...)
	slices.Sort(sorted)
	r.Done = len(sorted)
	if r.Done > 0 {
		r.Median, r.P99 = sorted[r.Done/2], sorted[min(r.Done-1, r.Done*99/100)]
	}
	failed := slices.Concat(failures...)
	if r.Failed = len(failed); r.Failed > 0 {
		r.First = failed[0]
	}
}

// does makes one operation.
type does func(pool.Kind, func(context.Context, *kmip.Session) error) error

// connect returns the function that makes an operation of a measurement. It opens reused
// connections before the time begins.
func connect(ctx context.Context, config Config, row *Row) (do does, done func(), err error) {
	if !row.Reuse {
		var next sync.Mutex
		turn := 0
		return func(_ pool.Kind, operation func(context.Context, *kmip.Session) error) error {
			next.Lock()
			server := config.Servers[turn%len(config.Servers)]
			turn++
			next.Unlock()
			return once(ctx, server, config.single, operation)
		}, func() {}, nil
	}
	manager, err := kmip.New(kmip.Config{
		Servers: config.Servers, TLS: config.kept,
		Pool: pool.Config[*kmip.Session]{Max: row.Clients, Min: row.Clients, RequestTimeout: kmip.CreateTimeout},
	})
	if err != nil {
		return nil, nil, err
	}
	if err := warm(ctx, manager, row.Clients*len(config.Servers)); err != nil {
		manager.Close()
		return nil, nil, err
	}
	return func(kind pool.Kind, operation func(context.Context, *kmip.Session) error) error {
		return manager.Do(ctx, kind, operation)
	}, manager.Close, nil
}

// warmTime is how long connections may take to open before the measurement begins without
// the rest, for example because a server allows fewer.
const warmTime = 20 * time.Second

// warm waits until this many connections are open, for at most warmTime. It pings meanwhile, so
// it returns the error of a manager that does not answer.
func warm(ctx context.Context, manager *kmip.Manager, connections int) error {
	began := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := manager.Do(ctx, pool.Repeatable, func(ctx context.Context, s *kmip.Session) error { return s.Ping(ctx) }); err != nil {
			return err
		}
		open := 0
		for _, status := range manager.Status() {
			if !status.Usable {
				connections = 0 // the other clients do its work
			}
			open += status.Connections
		}
		if open >= connections || time.Since(began) > warmTime {
			return nil
		}
		<-tick.C
	}
}

// once makes an operation on a connection of its own.
func once(ctx context.Context, server string, client *tlsprovider.Client, operation func(context.Context, *kmip.Session) error) error {
	ctx, cancel := context.WithTimeout(ctx, kmip.CreateTimeout)
	defer cancel()
	address, err := kmip.Address(server)
	if err != nil {
		return err
	}
	s, err := kmip.Dial(ctx, address, client, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	return operation(ctx, s)
}

// Versions returns the protocol versions that a server supports, the newest first.
func Versions(ctx context.Context, server string, client *tlsprovider.Client) (versions []string, err error) {
	err = once(ctx, server, client, func(ctx context.Context, s *kmip.Session) error {
		versions, err = s.Versions(ctx)
		return err
	})
	return versions, err
}
