// SPDX-License-Identifier: Apache-2.0

package kmsplugin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/defect"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/blob"
)

// How long the result of a check is used. A check costs the key manager two or three requests,
// however often the status is requested.
const (
	healthyFor   = 10 * time.Second
	unhealthyFor = time.Second
)

// check is the result of a check of the key that wraps new data.
type check struct {
	at  time.Time
	key *writeKey // nil if there is an error
	err error
}

func (c *check) counts(now time.Time) bool {
	if c == nil {
		return false
	}
	if c.err != nil {
		return now.Sub(c.at) < unhealthyFor
	}
	return now.Sub(c.at) < healthyFor
}

// Forget makes the next call check the key. It is for changes of the key providers.
func (p *Plugin) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = nil
	p.generation++
}

// Ready returns the empty string if the plugin wraps and unwraps, or else the reason why it does
// not.
func (p *Plugin) Ready() string {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	if c := p.current(ctx); c.err != nil {
		return p.sentence(p.options.Key, c.err)
	}
	return ""
}

// Healthy returns the result of the last check, without a new check. known is false before the
// first check, and after a failure that no check has followed yet.
func (p *Plugin) Healthy() (healthy, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last != nil && p.last.err == nil, p.last != nil
}

// current returns the last check if it is recent enough, or else makes a new check. Concurrent
// calls wait for one check, which continues if one of them gives up.
func (p *Plugin) current(ctx context.Context) *check {
	p.mu.Lock()
	last, generation := p.last, p.generation
	p.mu.Unlock()
	if last.counts(p.options.Now()) {
		return last
	}
	result := p.checking.DoChan(fmt.Sprint(generation), func() (any, error) {
		limited, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		c := p.check(limited)
		p.keep(c, generation)
		return c, nil
	})
	select {
	case r := <-result:
		return r.Val.(*check)
	case <-ctx.Done():
		return &check{err: ctx.Err()}
	}
}

// check checks the key. A panic becomes an error without its text, which could quote a key.
func (p *Plugin) check(ctx context.Context) (c *check) {
	defer func() {
		if recovered := recover(); recovered != nil {
			cause, stack := defect.Describe(recovered)
			p.options.Logger.ErrorContext(ctx, "a check of the key failed because of a defect in the KMS plugin", "cause", cause, "stack", stack)
			c = &check{at: p.options.Now(), err: fmt.Errorf("%w: a defect in the KMS plugin", keys.ErrUnusable)}
		}
	}()
	key, err := p.roundTrip(ctx)
	return &check{at: p.options.Now(), key: key, err: err}
}

// roundTrip wraps a random key, and unwraps it as Decrypt does.
func (p *Plugin) roundTrip(ctx context.Context) (*writeKey, error) {
	found, err := p.options.Keys.Key(ctx, keys.Name{ID: p.options.Key})
	if err != nil {
		return nil, err
	}
	wrapper, err := wrapperOf(found)
	if err != nil {
		return nil, err
	}
	header := blob.Header{Algorithm: wrapping, KeyVersion: found.Version(), ContextHash: blob.HashContext(purpose)}
	header.Provider, header.KeyID = keys.SplitID(p.options.Key)
	key := &writeKey{wrapper, header, keyID(header)}
	random := make([]byte, 32)
	rand.Read(random)
	ciphertext, err := key.seal(ctx, random)
	if err != nil {
		return nil, err
	}
	parsed, wrapped, err := blob.Parse(ciphertext)
	if err != nil {
		return nil, fmt.Errorf("%w: a ciphertext %w", keys.ErrUnusable, err)
	}
	opened, err := p.open(ctx, parsed, wrapped)
	if err != nil {
		return nil, fmt.Errorf("unwrap the key that was wrapped for the test: %w", err)
	}
	if subtle.ConstantTimeCompare(opened, random) != 1 {
		return nil, fmt.Errorf("%w: its key manager unwrapped another key than it had wrapped", keys.ErrUnusable)
	}
	return key, nil
}

// keep stores a check, and logs it if it differs from the check before.
func (p *Plugin) keep(c *check, generation int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if generation != p.generation {
		return
	}
	p.last = c
	if c.err != nil {
		if problem := p.sentence(p.options.Key, c.err); problem != p.reported {
			p.reported = problem
			p.options.Logger.Warn("the plugin does not wrap keys of the API server", "problem", problem, "key", p.options.Key, "error", c.err)
		}
		return
	}
	if c.key.id == p.reported {
		return
	}
	p.reported = c.key.id
	p.options.Logger.Info("the plugin wraps keys of the API server", "key", p.options.Key, "keyVersion", c.key.header.KeyVersion, "keyId", c.key.id)
}

// away reports whether an error means that the key manager did not answer.
func away(err error) bool {
	return keys.Transient(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// sentence returns why a key cannot be used. The API server shows it to its users, so it has no
// details of the connection to the key manager. The log has the error itself.
func (p *Plugin) sentence(id string, err error) string {
	provider, rest := keys.SplitID(id)
	var unknown *keys.NoProviderError
	switch {
	case errors.As(err, &unknown):
		return fmt.Sprintf("the key provider %q is not in the directory of key providers, or could not be opened", provider)
	case errors.Is(err, keys.ErrThrottled):
		return fmt.Sprintf("the key provider %q refuses requests because there are too many", provider)
	case away(err):
		return fmt.Sprintf("the key provider %q does not answer", provider)
	case errors.Is(err, keys.ErrDenied):
		return fmt.Sprintf("the key provider %q denies the use of the key %q", provider, rest)
	case errors.Is(err, keys.ErrNotFound):
		return fmt.Sprintf("the key provider %q does not have the key %q, or not this version of it", provider, rest)
	case errors.Is(err, keys.ErrInvalidCiphertext):
		return fmt.Sprintf("the key %q of the key provider %q does not unwrap this ciphertext", rest, provider)
	default:
		return fmt.Sprintf("the key %q of the key provider %q cannot be used; the log of the KMS plugin says why", rest, provider)
	}
}

// refuse logs why a call failed, and returns the error for the API server.
func (p *Plugin) refuse(ctx context.Context, method, uid, id string, err error) error {
	p.options.Logger.WarnContext(ctx, "a call of the API server failed", "method", method, "uid", shorten(uid), "key", id, "error", err)
	code := codes.FailedPrecondition
	switch {
	case away(err):
		code = codes.Unavailable
	case errors.Is(err, keys.ErrDenied):
		code = codes.PermissionDenied
	case errors.Is(err, keys.ErrNotFound):
		code = codes.NotFound
	case errors.Is(err, keys.ErrInvalidCiphertext):
		code = codes.InvalidArgument
	}
	return status.Error(code, p.sentence(id, err))
}
