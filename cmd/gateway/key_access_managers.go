// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/datakeycache"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/keyring"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
)

// keyManagers are the key managers of a key access service, and the data keys that they have unwrapped. It is nil if the service has
// no key managers.
type keyManagers struct {
	stack    *keys.Stack
	dataKeys *datakeycache.Cache // nil if none are kept
	followed *providers.Followed
	stop     context.CancelFunc
	open     atomic.Pointer[map[string]keys.Provider]
}

// newKeyManagers opens the key providers of the configuration, if there are any. They last longer than ctx, until close.
func newKeyManagers(ctx context.Context, config *keyAccessFile, logger *slog.Logger) (*keyManagers, error) {
	if config.KeyProvidersDir == "" {
		return nil, nil //nolint:nilnil // a service without key managers
	}
	m := &keyManagers{stack: keys.NewStack(nil)}
	m.open.Store(&map[string]keys.Provider{}) // Follow reports changes only
	if config.DataKeyCache {
		m.dataKeys = datakeycache.New(func(err error) {
			logger.Warn("the memory of data keys may be swapped or be in a core dump", "error", err)
		})
	}
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.stop = stop
	var err error
	m.followed, err = providers.Follow(lasting, config.KeyProvidersDir, keyProviders, func(all map[string]keys.Provider) {
		m.open.Store(&all)
		m.stack.Use(all)
		m.forget()
	}, providers.LogTo(logger, config.KeyProvidersDir))
	if err != nil {
		stop()
		return nil, fmt.Errorf("keyProvidersDir: %w", err)
	}
	return m, nil
}

// finder returns what finds keys in key managers, or nil.
func (m *keyManagers) finder() wrapping.Finder {
	if m == nil {
		return nil
	}
	return m.stack
}

// kept returns the data keys that are kept, or nil.
func (m *keyManagers) kept() *datakeycache.Cache {
	if m == nil {
		return nil
	}
	return m.dataKeys
}

// generation counts changes of the key providers.
func (m *keyManagers) generation() uint64 {
	if m == nil {
		return 0
	}
	return m.stack.Generation()
}

// forget overwrites all data keys, because what they depend on has changed.
func (m *keyManagers) forget() {
	if kept := m.kept(); kept != nil {
		kept.Forget()
	}
}

// close ends the connections to key managers, and overwrites all data keys.
func (m *keyManagers) close() {
	if m == nil {
		return
	}
	if m.dataKeys != nil {
		m.dataKeys.Close()
	}
	m.stop()
	m.followed.Wait()
}

// status returns the state of the endpoints of each provider.
func (m *keyManagers) status() map[string][]pool.Status {
	all := map[string][]pool.Status{}
	if m == nil {
		return all
	}
	for name, provider := range *m.open.Load() {
		if open, ok := provider.(providers.Provider); ok {
			all[name] = open.Status()
		}
	}
	return all
}

// pendingKey returns which key is not there yet, or the empty string.
func pendingKey(ring *keyring.Ring) string {
	if names := slices.Sorted(maps.Keys(ring.Pending())); len(names) > 0 {
		return fmt.Sprintf("the key %s is not read from its key manager yet", names[0])
	}
	return ""
}
