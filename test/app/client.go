// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// The behaviour of released clients. At the start they wait for the broker. After an answer of retryable they call up to
// five times, with a pause of half a second that doubles each time. (Their circuit breaker is left out, because it would
// hide calls that the broker would refuse.)
const (
	connectTimeout = 60 * time.Second
	attempts       = 5
	firstPause     = 500 * time.Millisecond
	attemptTimeout = 10 * time.Second
)

func retryable(code codes.Code) bool {
	return code == codes.Unavailable || code == codes.ResourceExhausted || code == codes.Aborted
}

// client is one connection to the broker.
type client struct {
	connection *grpc.ClientConn
	// repeated is called with each error that makes the client repeat a call.
	repeated func(error)
	pause    time.Duration
}

// connect waits until the broker's socket accepts the connection, for at most the given time.
func connect(ctx context.Context, socket string, timeout time.Duration, repeated func(error)) (*client, error) {
	connection, err := grpc.NewClient("unix://"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{})))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", socket, err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	connection.Connect()
	for state := connection.GetState(); state != connectivity.Ready; state = connection.GetState() {
		if state == connectivity.Idle {
			connection.Connect()
		}
		if !connection.WaitForStateChange(ctx, state) {
			return nil, errors.Join(fmt.Errorf("no broker answered on %s within %s", socket, timeout), connection.Close())
		}
	}
	return &client{connection: connection, repeated: repeated, pause: firstPause}, nil
}

// hash asks for the digest of input under a profile, checks the answer and returns its algorithm.
func (c *client) hash(ctx context.Context, profile string, input []byte, id string) (algorithm string, err error) {
	answer, err := c.call(ctx, hashDataMethod, encodeHashData(profile, input, id))
	if err != nil {
		return "", err
	}
	reply, err := decodeHashData(answer)
	if err != nil {
		return "", err
	}
	if reply.id != id {
		return "", fmt.Errorf("found the answer of call %q, expected the answer of %q", reply.id, id)
	}
	return reply.algorithm, checkDigest(reply.algorithm, input, reply.hashHex)
}

// health asks whether the broker serves.
func (c *client) health(ctx context.Context) error {
	answer, err := c.call(ctx, healthMethod, nil) // an empty message: the server as a whole
	if err != nil {
		return err
	}
	serving, err := decodeHealth(answer)
	if err == nil && !serving {
		err = errors.New("found another health status than SERVING")
	}
	return err
}

// call sends a request, and repeats it as released clients do.
func (c *client) call(ctx context.Context, method string, request []byte) ([]byte, error) {
	pause := c.pause
	for attempt := 1; ; attempt++ {
		answer, err := c.attempt(ctx, method, request)
		if err == nil || !retryable(status.Code(err)) || attempt == attempts {
			return answer, err
		}
		c.repeated(err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
		pause *= 2
	}
}

func (c *client) attempt(ctx context.Context, method string, request []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	var answer []byte
	err := c.connection.Invoke(ctx, method, &request, &answer)
	return answer, err
}

func (c *client) close() error { return c.connection.Close() }
