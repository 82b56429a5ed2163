// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"golang.org/x/sync/semaphore"

	"github.com/crypto-broker/crypto-broker-operator/broker/session"
)

// Sizes of a connection to Redis. The defaults of the library take more than a megabyte for each.
const (
	bufferSize = 16 << 10
	// ringScale is the binary logarithm of the number of commands of a connection that may wait for their replies. The library has
	// one more wait for as long as it takes, whatever its context says, so that there must not be more of them.
	ringScale = 8
	// commandsOfPart is the maximum number of commands about one part of the sessions that may wait for their replies. All parts may be
	// on one server. The few places that are left are for commands of the library.
	commandsOfPart = 1<<ringScale/parts - 1
	// pingTime is how long a connection may be idle before the client tests it.
	pingTime = 10 * time.Second
	// refreshTime is how often Sentinels are asked who is the master, in case a message of theirs was lost.
	refreshTime = 5 * time.Second
)

// connection connects to Redis, and says whether it answers.
type connection struct {
	settings *Settings
	// observe is called when Redis begins or ceases to answer, one call at a time. The error is nil in
	// the first case.
	observe func(error)
	// places has the commands that wait for their replies, by the part of the sessions that they are about.
	places [parts]*semaphore.Weighted

	mu      sync.Mutex
	client  rueidis.Client // nil before the first connection
	pending *attempt       // nil if none runs
	closed  bool

	telling sync.Mutex
	state   state
}

// attempt is one attempt to connect.
type attempt struct {
	done chan struct{}
	err  error
}

// state is what the observer knows.
type state uint8

const (
	unknown state = iota
	serves
	// isAway means that Redis does not answer.
	isAway
	// isUnfit means that Redis answers, but something else is wrong, for example it is out of memory. The state lasts until a
	// session is changed.
	isUnfit
)

func newConnection(settings *Settings, observe func(error)) *connection {
	c := &connection{settings: settings, observe: observe}
	for i := range c.places {
		c.places[i] = semaphore.NewWeighted(commandsOfPart)
	}
	return c
}

// begin returns the client. It connects if there was no connection yet. The library makes later ones.
func (c *connection) begin(ctx context.Context) (rueidis.Client, error) {
	c.mu.Lock()
	if c.client != nil || c.closed {
		defer c.mu.Unlock()
		if c.closed {
			return nil, errors.New("the broker ends")
		}
		return c.client, nil
	}
	running := c.pending
	if running == nil {
		running = &attempt{done: make(chan struct{})}
		c.pending = running
		go c.connect(running)
	}
	c.mu.Unlock()
	select {
	case <-running.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if running.err != nil {
		return nil, running.err
	}
	return c.begin(ctx)
}

// connect makes the first connection.
func (c *connection) connect(a *attempt) {
	client, err := rueidis.NewClient(c.options())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending, a.err = nil, err
	switch {
	case err == nil && c.closed:
		client.Close()
	case err == nil:
		c.client = client
	}
	close(a.done)
}

func (c *connection) options() rueidis.ClientOption {
	s := c.settings
	options := rueidis.ClientOption{
		InitAddress: s.Addresses, SelectDB: s.Database, ForceSingleClient: !s.Cluster && s.SentinelMaster == "",
		Dialer: net.Dialer{Timeout: s.Timeout, KeepAlive: pingTime}, DialCtxFn: c.dial, ConnWriteTimeout: s.Timeout,
		AuthCredentialsFn: func(of rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			user, file := s.User, Password
			if _, ok := of.Address.(sentinelAddress); ok {
				user, file = s.SentinelUser, SentinelPassword
			}
			password, err := s.password(file)
			return rueidis.AuthCredentials{Username: user, Password: password}, err
		},
		RingScaleEachConn: ringScale, ReadBufferEachConn: bufferSize, WriteBufferEachConn: bufferSize, PipelineMultiplex: -1,
		ClientSetInfo: rueidis.DisableClientSetInfo, DisableCache: true,
		// A command that the library repeats would find its own nonce already used.
		DisableRetry:     true,
		AlwaysPipelining: true, // all calls share the connection
	}
	if !s.WithoutTLS {
		// From Redis 8 on, servers of a cluster announce a port for TLS and a port without TLS. The library takes the port for TLS
		// if this configuration is set. It does not use the configuration otherwise, because dial makes the connections.
		options.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if s.SentinelMaster != "" {
		options.Sentinel = rueidis.SentinelOption{
			Dialer: options.Dialer, TLSConfig: toSentinel, MasterSet: s.SentinelMaster, TopologyRefreshInterval: refreshTime,
		}
	}
	return options
}

// toSentinel is the configuration that the library passes to dial for connections to Sentinels. The library asks for the
// credentials of Sentinels and of servers with the same function, which gets only the address.
var toSentinel = &tls.Config{}

// sentinelConnection is a connection whose address says that it leads to a Sentinel.
type sentinelConnection struct{ net.Conn }

type sentinelAddress struct{ net.Addr }

func (c sentinelConnection) RemoteAddr() net.Addr { return sentinelAddress{c.Conn.RemoteAddr()} }

// dial makes a connection with the credentials that are in the directory now.
func (c *connection) dial(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
	conn, err := c.dialServer(ctx, address, dialer)
	if err == nil && config == toSentinel {
		conn = sentinelConnection{conn}
	}
	return conn, err
}

func (c *connection) dialServer(ctx context.Context, address string, dialer *net.Dialer) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.settings.Timeout)
	defer cancel()
	if c.settings.WithoutTLS {
		return dialer.DialContext(ctx, "tcp", address)
	}
	credentials, err := c.settings.credentials()
	if err != nil {
		return nil, err
	}
	defer credentials.Forget()
	client, err := credentials.TLS(c.settings.ServerName, 0)
	if err != nil {
		return nil, err
	}
	raw, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(address) // no error: the address was dialed
	return client.Handshake(ctx, raw, host)
}

// password returns a password, empty if there is none.
func (s *Settings) password(file string) (string, error) {
	credentials, err := s.credentials()
	if err != nil {
		return "", err
	}
	defer credentials.Forget()
	return string(credentials[file]), nil
}

// ask sends Redis a command about a session, and returns its answer, or the errors of [session.Shared]. An id may be empty.
func ask[T any](ctx context.Context, c *connection, id string, question func(context.Context, rueidis.Client) (T, error)) (answer T, err error) {
	bounded, cancel := context.WithTimeout(ctx, c.settings.Timeout)
	defer cancel()
	client, err := c.begin(bounded)
	if err == nil {
		answer, err = await(bounded, c.places[partOf(id)], func(ctx context.Context) (T, error) { return question(ctx, client) })
	}
	switch {
	case err == nil:
		c.answered()
		return answer, nil
	case ctx.Err() != nil:
		return answer, ctx.Err()
	case isOutOfMemory(err):
		c.tell(isUnfit, err)
		return answer, session.ErrNoMemory
	}
	if bounded.Err() != nil {
		err = fmt.Errorf("found no answer within %s", c.settings.Timeout)
	}
	c.tell(isAway, err)
	return answer, session.ErrUnavailable
}

// await asks a question when there is a place for it, and waits for the answer until ctx ends. The question keeps its place until it
// is answered or its connection ends, because the library keeps a place for it that long.
func await[T any](ctx context.Context, places *semaphore.Weighted, question func(context.Context) (T, error)) (answer T, err error) {
	if err := places.Acquire(ctx, 1); err != nil {
		return answer, err
	}
	type reply struct {
		answer T
		err    error
	}
	replies := make(chan reply, 1)
	go func() {
		defer places.Release(1)
		answer, err := question(context.WithoutCancel(ctx))
		replies <- reply{answer, err}
	}()
	select {
	case got := <-replies:
		return got.answer, got.err
	case <-ctx.Done():
		return answer, ctx.Err()
	}
}

// isOutOfMemory reports whether Redis has refused to write because it has no memory left.
func isOutOfMemory(err error) bool {
	answer, ok := rueidis.IsRedisErr(err)
	return ok && (strings.HasPrefix(answer.Error(), "OOM ") || strings.Contains(answer.Error(), "-OOM "))
}

// tell tells the observer of a change.
func (c *connection) tell(now state, err error) {
	c.telling.Lock()
	defer c.telling.Unlock()
	if c.state != now {
		c.state = now
		c.observe(withoutArguments(err))
	}
}

// withoutArguments returns an error that may be logged. Redis quotes the arguments of a command that it does not know. Before
// version 6 one of them is the password, and others are keys of sessions.
func withoutArguments(err error) error {
	if answer, ok := rueidis.IsRedisErr(err); ok {
		text, _, _ := strings.Cut(answer.Error(), ", with args")
		return errors.New(text)
	}
	return err
}

// answered tells the observer that Redis answers, unless something else is wrong.
func (c *connection) answered() {
	c.telling.Lock()
	unfit := c.state == isUnfit
	c.telling.Unlock()
	if !unfit {
		c.tell(serves, nil)
	}
}

// serves reports whether nothing is wrong.
func (c *connection) serves() bool {
	c.telling.Lock()
	defer c.telling.Unlock()
	return c.state == serves
}

func (c *connection) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.client != nil {
		c.client.Close()
		c.client = nil
	}
}
