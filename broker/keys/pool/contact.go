// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// Reach is the result of the last contact with an endpoint.
type Reach int

// Unknown is for an endpoint that was not contacted yet.
const (
	Unknown Reach = iota
	Reachable
	Unreachable
)

// Failure is the reason why an endpoint did not serve. It is one of the words below, and never
// quotes a server or a user.
type Failure string

// The failures. None of them is the empty Failure.
const (
	// NameNotFound means that the host of the endpoint has no address.
	NameNotFound Failure = "NameNotFound"
	// NotConnected means that there was no TCP connection.
	NotConnected Failure = "NotConnected"
	// TimedOut means that the endpoint took too long to connect or to answer.
	TimedOut Failure = "TimedOut"
	// CertificateNotTrusted means that the authorities of the configuration have not issued the
	// certificate of the server, or that it is for another name or time.
	CertificateNotTrusted Failure = "CertificateNotTrusted"
	// CredentialsRefused means that the server did not accept the client's certificate, or has
	// denied the last requests.
	CredentialsRefused Failure = "CredentialsRefused"
	// BadReply means that the server closed connections, or answered that it cannot serve.
	BadReply Failure = "BadReply"
)

// deniedLimit is the number of consecutive requests that a server denies until its credentials
// count as refused. A single denial may be about a key.
const deniedLimit = 3

// Requests are the numbers of requests to an endpoint, by how they ended. Requests whose callers
// did not wait do not count.
type Requests struct {
	// Served requests have an answer, even if the answer is that there is no such key. Took is
	// the total time of these requests.
	Served uint64
	Took   time.Duration
	// Unavailable, Throttled and Denied are the requests that failed with [keys.ErrUnavailable],
	// [keys.ErrThrottled] and [keys.ErrDenied].
	Unavailable, Throttled, Denied uint64
}

// Versioned is a connection that knows the version of its server.
type Versioned interface {
	// ServerVersion returns a short text. It is empty while the server has not reported its
	// version.
	ServerVersion() string
}

// Fragile is a connection that may have become useless although the server works.
type Fragile interface {
	// Broken reports whether no other request can be made on the connection.
	Broken() bool
}

// contact has the results of the contacts with an endpoint.
type contact struct {
	reach, deniedInRow                           atomic.Int32
	failure, version                             atomic.Pointer[string]
	pinged                                       atomic.Int64 // nanoseconds
	served, took, unavailable, throttled, denied atomic.Uint64
}

// failed notes that no connection to the endpoint could be made, or that it does not serve.
func (c *contact) failed(err error) {
	text := string(failureOf(err))
	c.failure.Store(&text)
	c.reach.Store(int32(Unreachable))
}

// answered notes that the endpoint serves.
func (c *contact) answered(conn any) {
	c.reach.Store(int32(Reachable))
	if v, ok := conn.(Versioned); ok {
		if text := v.ServerVersion(); text != "" {
			c.version.Store(&text)
		}
	}
}

// ended notes the result of a request and the time that it took.
func (c *contact) ended(err error, took time.Duration) {
	if errors.Is(err, keys.ErrDenied) {
		c.denied.Add(1)
		c.deniedInRow.Add(1)
		return
	}
	switch {
	case errors.Is(err, keys.ErrUnavailable):
		c.unavailable.Add(1)
		c.failed(err)
		return
	case errors.Is(err, keys.ErrThrottled):
		c.throttled.Add(1)
	default:
		c.served.Add(1)
		c.took.Add(uint64(max(0, took))) //nolint:gosec // not negative
	}
	c.deniedInRow.Store(0)
}

// fill copies the results into a status.
func (c *contact) fill(s *Status) {
	text := func(p *atomic.Pointer[string]) string {
		if v := p.Load(); v != nil {
			return *v
		}
		return ""
	}
	s.Reach, s.Version = Reach(c.reach.Load()), text(&c.version)
	switch {
	case s.Reach == Unreachable:
		s.Failure = Failure(text(&c.failure))
	case c.deniedInRow.Load() >= deniedLimit:
		s.Failure = CredentialsRefused
	}
	if s.Latency == 0 {
		s.Latency = time.Duration(c.pinged.Load())
	}
	s.Requests = Requests{
		Served: c.served.Load(), Took: time.Duration(c.took.Load()), //nolint:gosec // a sum of durations
		Unavailable: c.unavailable.Load(), Throttled: c.throttled.Load(), Denied: c.denied.Load(),
	}
}

// failureOf returns the word for an error.
func failureOf(err error) Failure {
	var (
		untrusted *tls.CertificateVerificationError
		alert     tls.AlertError
		name      *net.DNSError
		timeout   net.Error
		operation *net.OpError
	)
	switch {
	case errors.As(err, &untrusted):
		return CertificateNotTrusted
	case errors.As(err, &alert), errors.Is(err, keys.ErrDenied):
		return CredentialsRefused
	case errors.As(err, &name):
		return NameNotFound
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errTimedOut), errors.As(err, &timeout) && timeout.Timeout():
		return TimedOut
	case errors.As(err, &operation) && operation.Op == "dial":
		return NotConnected
	}
	return BadReply
}
