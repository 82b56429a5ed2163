// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers || interop

package kmip_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	protocol "github.com/ovh/kmip-go"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/kmip"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
	"github.com/crypto-broker/crypto-broker-operator/test/keymanagers"
	"github.com/crypto-broker/crypto-broker-operator/test/kmipserver"
	"github.com/crypto-broker/crypto-broker-operator/test/pykmip"
)

func managerOf(t *testing.T, servers *kmipserver.Servers, settings pool.Config[*kmip.Session]) *kmip.Manager {
	t.Helper()
	m, err := kmip.New(kmip.Config{Servers: servers.Addresses, TLS: servers.Client(t), Pool: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// do makes a request that has to succeed.
func do(t *testing.T, m *kmip.Manager, kind pool.Kind, request func(context.Context, *kmip.Session) error) {
	t.Helper()
	if err := m.Do(t.Context(), kind, request); err != nil {
		t.Fatal(err)
	}
}

func TestAKeyManagerDoesAllOperations(t *testing.T) {
	keymanagers.EachKMIP(t, func(t *testing.T, product keymanagers.KMIP) {
		servers := product.Start(t, 1)
		m := managerOf(t, servers, pool.Config[*kmip.Session]{})
		var key, wrapping string
		var made []string
		do(t, m, pool.Once, func(ctx context.Context, s *kmip.Session) (err error) {
			key, err = s.CreateAES(ctx, 256)
			return err
		})
		do(t, m, pool.Once, func(ctx context.Context, s *kmip.Session) (err error) {
			wrapping, err = s.CreateWrappingAES(ctx, 256)
			return err
		})
		do(t, m, pool.Once, func(ctx context.Context, s *kmip.Session) error {
			private, public, err := s.CreateRSA(ctx, 2048)
			made = append(made, private, public)
			return err
		})
		made = append(made, key, wrapping)

		var plain, wrapped, wrapper []byte
		do(t, m, pool.Repeatable, func(ctx context.Context, s *kmip.Session) (err error) {
			plain, err = s.Get(ctx, key)
			return err
		})
		do(t, m, pool.Repeatable, func(ctx context.Context, s *kmip.Session) (err error) {
			wrapper, err = s.Get(ctx, wrapping)
			return err
		})
		do(t, m, pool.Repeatable, func(ctx context.Context, s *kmip.Session) (err error) {
			wrapped, err = s.GetWrapped(ctx, key, wrapping)
			return err
		})
		if len(plain) != 32 {
			t.Errorf("the key has %d bytes, want 32", len(plain))
		}
		if got := pykmip.Unwrap(t, wrapper, wrapped); !bytes.Equal(got, plain) {
			t.Error("the wrapped key is unwrapped to another key")
		}
		for _, id := range made {
			do(t, m, pool.Once, func(ctx context.Context, s *kmip.Session) error { return s.Destroy(ctx, id) })
		}
		err := m.Do(t.Context(), pool.Repeatable, func(ctx context.Context, s *kmip.Session) error {
			_, err := s.Get(ctx, key)
			return err
		})
		if !errors.Is(err, keys.ErrNotFound) {
			t.Errorf("a key that was destroyed: got %v, want ErrNotFound", err)
		}
	})
}

func TestEveryVersionOfTheProtocolServes(t *testing.T) {
	t.Parallel()
	keymanagers.EachKMIP(t, func(t *testing.T, product keymanagers.KMIP) {
		servers := product.Start(t, 1)
		for _, version := range []protocol.ProtocolVersion{protocol.V1_0, protocol.V1_1, protocol.V1_2, protocol.V1_3, protocol.V1_4} {
			t.Run(version.String(), func(t *testing.T) {
				s, err := kmip.Dial(t.Context(), servers.Addresses[0], servers.Client(t), &version)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				key, err := s.CreateAES(t.Context(), 256)
				if err != nil {
					t.Fatal(err)
				}
				wrapping, err := s.CreateWrappingAES(t.Context(), 256)
				if err != nil {
					t.Fatal(err)
				}
				plain, plainErr := s.Get(t.Context(), key)
				wrapper, wrapperErr := s.Get(t.Context(), wrapping)
				if err := errors.Join(plainErr, wrapperErr, s.Ping(t.Context())); err != nil || len(plain) != 32 {
					t.Fatalf("read a key of %d bytes, error %v", len(plain), err)
				}
				// KMIP 1.0 wraps keys with their encoding: PyKMIP can't do that, and Cosmian KMS does.
				if version != protocol.V1_0 {
					wrapped, err := s.GetWrapped(t.Context(), key, wrapping)
					if err != nil {
						t.Fatal(err)
					}
					if got := pykmip.Unwrap(t, wrapper, wrapped); !bytes.Equal(got, plain) {
						t.Error("the wrapped key is unwrapped to another key")
					}
				}
				if _, _, err := s.CreateRSA(t.Context(), 2048); err != nil {
					t.Error(err)
				}
				if s.Version() != version {
					t.Errorf("found version %s", s.Version())
				}
			})
		}
	})
}

func TestAServerThatEndsUnderLoadLosesNoReadAndNoKeyIsMadeTwice(t *testing.T) {
	keymanagers.EachKMIP(t, func(t *testing.T, product keymanagers.KMIP) {
		servers := product.Start(t, 2)
		m := managerOf(t, servers, pool.Config[*kmip.Session]{})
		var key string
		do(t, m, pool.Once, func(ctx context.Context, s *kmip.Session) (err error) {
			key, err = s.CreateAES(ctx, 256)
			return err
		})
		const readers, reads = 4, 150
		var all, creating sync.WaitGroup
		var read, asked, made atomic.Int64
		finished := make(chan struct{})
		half := make(chan struct{})
		for range readers {
			all.Go(func() {
				for range reads {
					err := m.Do(t.Context(), pool.Repeatable, func(ctx context.Context, s *kmip.Session) error {
						material, err := s.Get(ctx, key)
						clear(material)
						return err
					})
					if err != nil {
						t.Errorf("a read was lost: %v", err)
						return
					}
					if read.Add(1) == readers*reads/2 {
						close(half)
					}
				}
			})
		}
		creating.Go(func() {
			for {
				select {
				case <-finished:
					return
				default:
				}
				asked.Add(1)
				err := m.Do(t.Context(), pool.Once, func(ctx context.Context, s *kmip.Session) error {
					_, err := s.CreateAES(ctx, 256)
					return err
				})
				if err == nil {
					made.Add(1)
				}
			}
		})
		select {
		case <-half:
		case <-t.Context().Done():
			t.Fatal("the reads did not come half-way")
		}
		servers.Kill(t, 0)
		all.Wait()
		close(finished)
		creating.Wait()
		found := int64(servers.CountKeys(t) - 1)
		if found < made.Load() || found > asked.Load() {
			t.Errorf("the servers have %d new keys; %d were asked for, and %d made as replies say", found, asked.Load(), made.Load())
		}
		t.Logf("%d reads, none lost; %d keys asked for, %d made as replies say, %d there", read.Load(), asked.Load(), made.Load(), found)
	})
}

func TestTheOnlyServerMayRestart(t *testing.T) {
	keymanagers.EachKMIP(t, func(t *testing.T, product keymanagers.KMIP) {
		servers := product.Start(t, 1)
		m := managerOf(t, servers, pool.Config[*kmip.Session]{})
		var key string
		do(t, m, pool.Once, func(ctx context.Context, s *kmip.Session) (err error) {
			key, err = s.CreateAES(ctx, 256)
			return err
		})
		servers.Kill(t, 0)
		servers.Restart(t, 0)
		do(t, m, pool.Repeatable, func(ctx context.Context, s *kmip.Session) error {
			_, err := s.Get(ctx, key)
			return err
		})
	})
}

func TestACertificateOfAnotherAuthorityIsDenied(t *testing.T) {
	keymanagers.EachKMIP(t, func(t *testing.T, product keymanagers.KMIP) {
		servers, others := product.Start(t, 1), product.Start(t, 1)
		wrong := servers.Secure(t)
		wrong.Authorities = others.Secure(t).Authorities
		if _, err := kmip.Dial(t.Context(), servers.Addresses[0], clientOf(t, wrong), nil); !errors.Is(err, keys.ErrDenied) {
			t.Errorf("a server of another authority: got %v, want ErrDenied", err)
		}
		stranger := servers.Secure(t)
		stranger.Certificate, stranger.Key = others.Secure(t).Certificate, others.Secure(t).Key
		if s, err := kmip.Dial(t.Context(), servers.Addresses[0], clientOf(t, stranger), nil); err == nil {
			s.Close()
			t.Error("a client of another authority is accepted")
		}
	})
}
