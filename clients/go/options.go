// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	// DefaultSocket is the path of the socket on which brokers listen by default.
	DefaultSocket = "/tmp/open-crypto-broker/crypto-broker-server.sock"
	// SocketVariable is the name of the environment variable with the path of the socket.
	SocketVariable = "CRYPTO_BROKER_SOCKET"
)

const (
	// defaultRetryBudget is how long calls are tried again without WithRetryBudget. It is
	// enough for the start of a broker.
	defaultRetryBudget = 60 * time.Second
	// maxWait is the longest wait between two tries.
	maxWait = time.Second
)

// Option configures a client.
type Option func(*settings)

// settings are the values of the options.
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
	s := settings{socket: cmp.Or(os.Getenv(SocketVariable), DefaultSocket), retryBudget: defaultRetryBudget}
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

// WithSocket sets the path of the broker's socket. The default is the value of the environment
// variable CRYPTO_BROKER_SOCKET, or else [DefaultSocket].
func WithSocket(path string) Option { return func(s *settings) { s.socket = path } }

// WithProfile sets the profile of all requests that do not name a profile.
func WithProfile(name string) Option { return func(s *settings) { s.profile = name } }

// WithRetryBudget sets for how long after its begin a call is tried again, if the broker cannot
// be reached or is busy. The default is 60 seconds. With 0 there is one try. The longest wait
// between two tries is one second.
func WithRetryBudget(d time.Duration) Option { return func(s *settings) { s.retryBudget = d } }

// WithTimeout bounds the time of every call with all its tries, in addition to its context. The
// default, 0, is no timeout.
func WithTimeout(d time.Duration) Option { return func(s *settings) { s.timeout = d } }

// WithTraceContext sets a function that returns the trace context of a call. The client calls
// it once for each call, with the context and in the goroutine of the call.
func WithTraceContext(from func(context.Context) TraceContext) Option {
	return func(s *settings) { s.trace = from }
}

// WithDeprecationHandler sets a function for warnings of deprecated profiles. The client calls
// it once for each different warning. Several goroutines may call it at one time.
func WithDeprecationHandler(handle func(Deprecation)) Option {
	return func(s *settings) { s.deprecated = handle }
}

// WithoutExchange makes every request a unary call, even if the broker has the stream. Unary
// calls are slower. The option is for comparisons.
func WithoutExchange() Option { return func(s *settings) { s.unaryOnly = true } }
