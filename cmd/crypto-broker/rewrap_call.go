// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/blob"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// awayError means that the broker answers, and a key manager does not.
type awayError struct{ reason string }

// Error implements error.
func (e *awayError) Error() string { return e.reason }

// rewrap returns the new wrapped key for an old one, which may be the same. A key manager that was
// not available for the time of a call is not asked for the other keys that it has wrapped: each
// would take as long.
func (r *rewrapping) rewrap(ctx context.Context, wrapped []byte) (fresh []byte, already bool, err error) {
	header, _, _ := blob.Parse(wrapped) // the broker says what is wrong with it
	if reason := r.awayBefore(header.Provider); reason != "" {
		return nil, false, &awayError{"not tried after another key failed: " + reason}
	}
	request := &v1.RewrapKeyRequest{Profile: r.request.Profile, Context: r.request.Context, KeyId: r.request.KeyId, WrappedKey: wrapped}
	err = r.callQuietly(ctx, func(ctx context.Context) error {
		reply, err := r.patiently(ctx, request)
		fresh, already = reply.GetWrappedKey(), reply.GetUnchanged()
		if err == nil {
			r.warn(reply.GetMetadata())
		}
		return err
	})
	if away := (*awayError)(nil); errors.As(err, &away) && header.Provider != "" {
		r.mu.Lock()
		before := r.away[header.Provider]
		r.away[header.Provider] = awayKeys{before.count + 1, away.reason}
		r.mu.Unlock()
	}
	return fresh, already, err
}

const (
	firstPause = 50 * time.Millisecond
	maxPause   = time.Second
)

// patiently makes a call, and repeats it until ctx ends if another attempt may succeed. It returns
// an awayError if the broker answered until then, or is connected and did not.
func (r *rewrapping) patiently(ctx context.Context, request *v1.RewrapKeyRequest) (*v1.RewrapKeyResponse, error) {
	var last *awayError
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		reply, err := v1.NewCryptoServiceClient(r.conn).RewrapKey(ctx, request)
		code, message := status.Code(err), status.Convert(err).Message()
		switch {
		case code == codes.DeadlineExceeded && last != nil:
			return nil, last
		case code == codes.DeadlineExceeded && r.conn.GetState() == connectivity.Ready:
			return nil, &awayError{fmt.Sprintf("neither the broker at %s nor a key manager answered within %s", r.socket, r.timeout)}
		case !retryable(code):
			return reply, err
		}
		last = nil
		// So begins what the broker says of one profile, and not of itself.
		if code == codes.Unavailable && strings.HasPrefix(message, profile.OpRewrapKey.String()+" with profile ") {
			last = &awayError{message}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			if last != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, last
			}
			return nil, err
		}
	}
}

// awayKeys are the keys of a provider that were not rewrapped because a key manager was not
// available.
type awayKeys struct {
	count  int
	reason string
}

// awayBefore returns why keys of a provider were not rewrapped before, and counts one more. It
// returns the empty string if no key manager was away.
func (r *rewrapping) awayBefore(provider string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys, away := r.away[provider]
	if away {
		r.away[provider] = awayKeys{keys.count + 1, keys.reason}
	}
	return keys.reason
}

// reportAway writes how many keys were not rewrapped because a key manager was not available.
func (r *rewrapping) reportAway() {
	for _, provider := range slices.Sorted(maps.Keys(r.away)) {
		fmt.Fprintf(r.stderr, "%d keys of the provider %q were not rewrapped, because a key manager was not available: run the command again when it is\n",
			r.away[provider].count, provider)
	}
}
