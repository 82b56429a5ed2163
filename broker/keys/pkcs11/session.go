// SPDX-License-Identifier: Apache-2.0

//go:build pkcs11

package pkcs11

import (
	"context"
	"fmt"
	"sync"

	"github.com/miekg/pkcs11"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
)

// session is a connection of the pool. Calls of a library cannot be canceled. If the caller gives
// up, the session ends after the call.
type session struct {
	module *module
	handle pkcs11.SessionHandle
	// mu guards objects, the known handles. A goroutine holds it while it uses the session.
	mu      sync.Mutex
	objects map[objectName]pkcs11.ObjectHandle
}

// within runs a call of a library, and gives up when ctx ends. forget receives a result for which
// nobody waits any more.
func within[T any](ctx context.Context, call func() (T, error), forget func(T)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := call()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		go func() {
			if o := <-done; o.err == nil {
				forget(o.value)
			}
		}()
		var none T
		return none, ctx.Err()
	}
}

// connect opens a session and logs in. It tries a PIN that the token has refused only once,
// because tokens lock a PIN after some attempts.
func (p *Provider) connect(ctx context.Context, label string) (*session, error) {
	return within(ctx, func() (*session, error) {
		if p.refused.Load() {
			return nil, fmt.Errorf("%w: the token %s did not accept the credential \"pin\" before, and is not asked again until the credential changes", keys.ErrDenied, label)
		}
		slot, _, err := p.module.slot(label)
		if err != nil {
			return nil, err
		}
		handle, err := p.module.OpenSession(slot, pkcs11.CKF_SERIAL_SESSION)
		if err != nil {
			return nil, typed(err)
		}
		if err := p.module.login(handle, slot, p.pin); err != nil {
			_ = p.module.CloseSession(handle) // the first error says more
			if pinRefused(err) {
				p.refused.Store(true)
			}
			return nil, err
		}
		return &session{module: p.module, handle: handle, objects: map[objectName]pkcs11.ObjectHandle{}}, nil
	}, (*session).Close)
}

// Ping implements pool.Conn.
func (s *session) Ping(ctx context.Context) error {
	_, err := within(ctx, func() (pkcs11.SessionInfo, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		info, err := s.module.GetSessionInfo(s.handle)
		if err == nil && info.State != pkcs11.CKS_RO_USER_FUNCTIONS {
			err = pkcs11.Error(pkcs11.CKR_USER_NOT_LOGGED_IN)
		}
		return info, typed(err)
	}, func(pkcs11.SessionInfo) {})
	return err
}

// unprotected returns the error of a call that decrypts or unwraps. Some libraries report a
// general failure for a ciphertext that does not authenticate. If the session still works, the
// ciphertext was the cause. Forged ciphertexts must not stop the calls of others.
func (s *session) unprotected(err error) error {
	if !isCode(err, pkcs11.CKR_GENERAL_ERROR, pkcs11.CKR_FUNCTION_FAILED) {
		return err
	}
	if info, lost := s.module.GetSessionInfo(s.handle); lost != nil || info.State != pkcs11.CKS_RO_USER_FUNCTIONS {
		return err
	}
	return fmt.Errorf("%w: the library answered %w", keys.ErrInvalidCiphertext, err)
}

// Close implements pool.Conn. It does not wait for a call of the library that has not returned.
func (s *session) Close() {
	go func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = s.module.CloseSession(s.handle) // the session may have ended with its token
	}()
}

// do runs calls on a session. The calls may run twice.
func do[T any](ctx context.Context, p *Provider, calls func(*session) (T, error)) (value T, err error) {
	err = p.Do(ctx, pool.Repeatable, func(ctx context.Context, s *session) (err error) {
		value, err = within(ctx, func() (T, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			v, err := calls(s)
			return v, typed(err)
		}, forget)
		return err
	})
	return value, err
}

// forget overwrites what may be a secret.
func forget[T any](value T) {
	if secret, ok := any(value).([]byte); ok {
		clear(secret)
	}
}
