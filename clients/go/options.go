// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	// DefaultSocket is where brokers listen unless they were told otherwise.
	DefaultSocket = "/tmp/open-crypto-broker/crypto-broker-server.sock"
	// SocketVariable is the environment variable that names another socket.
	SocketVariable = "CRYPTO_BROKER_SOCKET"
)

const (
	// defaultRetryBudget is how long calls are repeated: what a broker may take to
	// start, as clients have always waited for it.
	defaultRetryBudget = 60 * time.Second
	// maxWait is the longest wait between two tries.
	maxWait = time.Second
)

// Option changes what New makes.
type Option func(*settings)

// settings is what options change.
type settings struct {
	socket      string
	profile     string
	retryBudget time.Duration
	timeout     time.Duration
	trace       func(context.Context) TraceContext
	deprecated  func(Deprecation)
	unaryOnly   bool
}

func newSettings(options []Option) (settings, error) {
	s := settings{socket: os.Getenv(SocketVariable), retryBudget: defaultRetryBudget}
	if s.socket == "" {
		s.socket = DefaultSocket
	}
	for _, option := range options {
		option(&s)
	}
	switch {
	case s.socket == "":
		return s, errors.New("crypto broker: the path of the socket is empty")
	case s.retryBudget < 0:
		return s, fmt.Errorf("crypto broker: the retry budget is %s, expected none or a positive one", s.retryBudget)
	case s.timeout < 0:
		return s, fmt.Errorf("crypto broker: the timeout is %s, expected none or a positive one", s.timeout)
	}
	return s, nil
}

// WithSocket names the socket of the broker. Without it, that is what the
// environment variable CRYPTO_BROKER_SOCKET names, or else DefaultSocket.
func WithSocket(path string) Option { return func(s *settings) { s.socket = path } }

// WithProfile names the profile of all requests that name none.
func WithProfile(name string) Option { return func(s *settings) { s.profile = name } }

// WithRetryBudget says for how long a call is repeated that failed because the
// broker could not be reached or was busy, from its begin on. Without it, that is
// 60 seconds; with 0 there is one try. The longest wait between two tries is one
// second.
func WithRetryBudget(d time.Duration) Option { return func(s *settings) { s.retryBudget = d } }

// WithTimeout bounds every call, all its tries included, in addition to its
// context. Without it, only the context does.
func WithTimeout(d time.Duration) Option { return func(s *settings) { s.timeout = d } }

// WithTraceContext takes the trace context of a call from its context. It is
// called once a call, by the goroutine that makes the call.
func WithTraceContext(from func(context.Context) TraceContext) Option {
	return func(s *settings) { s.trace = from }
}

// WithDeprecationHandler has a function called for every warning of a deprecated
// profile, once for each different warning. It may be called by several
// goroutines at one time.
func WithDeprecationHandler(handle func(Deprecation)) Option {
	return func(s *settings) { s.deprecated = handle }
}

// WithoutExchange makes one call of gRPC of every request, though the broker
// could serve them all on one stream. That is slower; it serves comparisons.
func WithoutExchange() Option { return func(s *settings) { s.unaryOnly = true } }
