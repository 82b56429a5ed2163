// SPDX-License-Identifier: Apache-2.0

package rewrap

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
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/connection"
)

// managerError means that the broker answers, but a key manager does not.
type managerError struct{ reason string }

// Error implements error.
func (e *managerError) Error() string { return e.reason }

// rewrap returns the new wrapped key for an old one, which may be the same. If a key manager was
// not available for the whole time of a call, rewrap does not try its other keys, because each
// would take as long.
func (r *Run) rewrap(ctx context.Context, wrapped []byte) (fresh []byte, already bool, err error) {
	header, _, _ := blob.Parse(wrapped) // the broker reports what is wrong with the key
	if reason := r.skip(header.Provider); reason != "" {
		return nil, false, &managerError{"not tried after another key failed: " + reason}
	}
	request := &v1.RewrapKeyRequest{Profile: r.Request.Profile, Context: r.Request.Context, KeyId: r.Request.KeyId, WrappedKey: wrapped}
	err = r.Broker.CallQuietly(ctx, func(ctx context.Context) error {
		reply, err := r.callUntil(ctx, request)
		fresh, already = reply.GetWrappedKey(), reply.GetUnchanged()
		if err == nil {
			r.warn(reply.GetMetadata())
		}
		return err
	})
	if failed := (*managerError)(nil); errors.As(err, &failed) && header.Provider != "" {
		r.mu.Lock()
		before := r.skipped[header.Provider]
		r.skipped[header.Provider] = skippedKeys{before.count + 1, failed.reason}
		r.mu.Unlock()
	}
	return fresh, already, err
}

const (
	firstPause = 50 * time.Millisecond
	maxPause   = time.Second
)

// callUntil makes a call, and repeats it until ctx ends if another attempt may succeed. If the
// broker has answered until then, or is connected and has not answered, it returns a
// managerError.
func (r *Run) callUntil(ctx context.Context, request *v1.RewrapKeyRequest) (*v1.RewrapKeyResponse, error) {
	var last *managerError
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		reply, err := v1.NewCryptoServiceClient(r.Broker.Conn).RewrapKey(ctx, request)
		code, message := status.Code(err), status.Convert(err).Message()
		switch {
		case code == codes.DeadlineExceeded && last != nil:
			return nil, last
		case code == codes.DeadlineExceeded && r.Broker.Conn.GetState() == connectivity.Ready:
			return nil, &managerError{fmt.Sprintf("neither the broker at %s nor a key manager answered within %s", r.Broker.Socket, r.Broker.Timeout)}
		case !connection.Retryable(code):
			return reply, err
		}
		last = nil
		// A message about one profile begins with this text. A message about the broker itself
		// does not.
		if code == codes.Unavailable && strings.HasPrefix(message, profile.OpRewrapKey.String()+" with profile ") {
			last = &managerError{message}
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

// skippedKeys are the keys of a provider that were not rewrapped because a key manager was not
// available.
type skippedKeys struct {
	count  int
	reason string
}

// skip returns why keys of a provider were not rewrapped before, and counts one more. It
// returns the empty string if there are none.
func (r *Run) skip(provider string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys, found := r.skipped[provider]
	if found {
		r.skipped[provider] = skippedKeys{keys.count + 1, keys.reason}
	}
	return keys.reason
}

// reportSkipped writes how many keys were not rewrapped because a key manager was not available.
func (r *Run) reportSkipped() {
	for _, provider := range slices.Sorted(maps.Keys(r.skipped)) {
		fmt.Fprintf(r.Broker.Stderr, "%d keys of the provider %q were not rewrapped, because a key manager was not available: run the command again when it is\n",
			r.skipped[provider].count, provider)
	}
}
