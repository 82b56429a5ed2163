// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package benchkeys

import (
	"os"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/datakeycache"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/kmip"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/openbao"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/test/kmipserver"
	baoserver "github.com/crypto-broker/crypto-broker-operator/test/openbao"
)

const (
	// slow and fast are the numbers of operations that are timed in a round: slow for operations that wait for a key manager, and
	// fast for others.
	slow, fast = 100, 50_000
)

// wrapping is the algorithm of keys in Transit.
var wrapping = algorithm.WrapAESGCM.String()

// openKMIP opens the broker's provider for servers at these addresses.
func openKMIP(b *testing.B, servers *kmipserver.Servers, addresses []string, remember time.Duration) *kmip.Provider {
	b.Helper()
	credentials := providers.Credentials{
		providers.ClientCertificate: read(b, servers.Certificate), providers.ClientKey: read(b, servers.Key), providers.Authorities: read(b, servers.Authority),
	}
	config := &providers.Config{Name: "kmip", Type: providers.KMIP, Endpoints: addresses, CacheTime: remember}
	p, err := providers.Types{providers.KMIP: kmip.Open}.Open(config, credentials)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Close)
	return p.(*kmip.Provider)
}

// openTransit opens the broker's provider for OpenBao's Transit.
func openTransit(b *testing.B, url, token string, authority []byte) providers.Provider {
	b.Helper()
	config := &providers.Config{Name: "bao", Type: providers.OpenBao, Endpoints: []string{url}, OpenBao: &providers.OpenBaoSettings{}}
	p, err := providers.Types{providers.OpenBao: openbao.Open}.Open(config, providers.Credentials{providers.Authorities: authority, providers.Token: []byte(token)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Close)
	return p
}

func read(b *testing.B, path string) []byte {
	b.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	return data
}

// each returns the time of one of n operations, and how many failed.
func each(n int, operation func() error) (took time.Duration, failed int) {
	began := time.Now()
	for range n {
		if operation() != nil {
			failed++
		}
	}
	return time.Since(began) / time.Duration(n), failed
}

// timed are the times of one operation in each round.
type timed struct {
	times  []float64 // nanoseconds
	failed int
}

func (t *timed) add(n int, operation func() error) {
	took, failed := each(n, operation)
	t.times, t.failed = append(t.times, float64(took)), t.failed+failed
}

// kmipKeys measures how long the broker's KMIP provider takes for a key.
type kmipKeys struct {
	asking, remembering *kmip.Provider
	local               engine.Cipher

	asked, remembered timed
	// encrypted has the times of encryptions with a given key, and found with a key from the provider's cache.
	encrypted, found timed
}

func newKMIPKeys(b *testing.B, servers *kmipserver.Servers) *kmipKeys {
	b.Helper()
	key, err := keys.NewAES("local", make([]byte, 32))
	if err != nil {
		b.Fatal(err)
	}
	k := &kmipKeys{
		local:  key.Cipher(b.Context()),
		asking: openKMIP(b, servers, servers.Addresses[:1], -1), remembering: openKMIP(b, servers, servers.Addresses[:1], time.Minute),
	}
	if err := k.asking.CreateAES(b.Context(), "measured", 256); err != nil {
		b.Fatal(err)
	}
	return k
}

func (k *kmipKeys) measure(b *testing.B) {
	name, ctx, plaintext := keys.Name{ID: "measured"}, b.Context(), make([]byte, 32)
	k.asked.add(slow, func() error {
		_, err := k.asking.Key(ctx, name)
		return err
	})
	_, failed := each(1, func() error {
		_, err := k.remembering.Key(ctx, name)
		return err
	})
	k.remembered.failed += failed
	k.remembered.add(fast, func() error {
		_, err := k.remembering.Key(ctx, name)
		return err
	})
	k.encrypted.add(fast, func() error {
		_, _, _, err := k.local.SealRandom(plaintext, nil) //nolint:dogsled // only the time is of interest
		return err
	})
	k.found.add(fast, func() error {
		key, err := k.remembering.Key(ctx, name)
		if err == nil {
			_, _, _, err = key.Cipher(ctx).SealRandom(plaintext, nil)
		}
		return err
	})
}

// unwrapping measures the time to unwrap a data key that Transit has wrapped, with the broker's cache.
type unwrapping struct {
	wrapper keys.Wrapper
	cache   *datakeycache.Cache
	wrapped []byte

	hit, miss timed
}

func newCache(b *testing.B) *datakeycache.Cache {
	b.Helper()
	c := datakeycache.New(func(error) {}) // it does not matter here whether the memory is locked
	b.Cleanup(c.Close)
	return c
}

// wrapperOf returns the wrapper of a key in Transit.
func wrapperOf(b *testing.B, p keys.Provider, id string) keys.Wrapper {
	b.Helper()
	key, err := p.Key(b.Context(), keys.Name{ID: id})
	if err != nil {
		b.Fatal(err)
	}
	return key.Wrapper()
}

func newUnwrapping(b *testing.B, server *baoserver.Server) *unwrapping {
	b.Helper()
	p := openTransit(b, server.URL, server.Token, read(b, server.Authority))
	if err := p.(keys.Creator).CreateAES(b.Context(), "measured", 256); err != nil {
		b.Fatal(err)
	}
	u := &unwrapping{wrapper: wrapperOf(b, p, "measured"), cache: newCache(b)}
	var err error
	if u.wrapped, err = u.wrapper.Wrap(b.Context(), wrapping, make([]byte, 32), nil); err != nil {
		b.Fatal(err)
	}
	return u
}

func (u *unwrapping) measure(b *testing.B) {
	u.cache.Forget()
	u.miss.add(slow, func() error {
		err := unwrap(b, u.cache, u.wrapper, u.wrapped)
		u.cache.Forget()
		return err
	})
	_, failed := each(1, func() error { return unwrap(b, u.cache, u.wrapper, u.wrapped) })
	u.hit.failed += failed
	u.hit.add(fast, func() error { return unwrap(b, u.cache, u.wrapper, u.wrapped) })
}

// unwrap unwraps a data key through the cache, as the broker does.
func unwrap(b *testing.B, c *datakeycache.Cache, wrapper keys.Wrapper, wrapped []byte) error {
	dataKey, err := c.Get(b.Context(), datakeycache.NewID([]byte("caller"), []byte("profile"), wrapped), unwrapWith(wrapper, wrapped))
	clear(dataKey)
	return err
}
