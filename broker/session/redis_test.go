// SPDX-License-Identifier: Apache-2.0

//go:build redis

package session_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/session"
	"github.com/crypto-broker/crypto-broker-operator/broker/session/redis"
	"github.com/crypto-broker/crypto-broker-operator/test/redisserver"
)

// init makes the tests of stores run with two brokers that share a Redis server.
func init() {
	session.UseShared("in Redis", ", Store: redis", func(t *testing.T) func(testing.TB) session.Shared {
		server := redisserver.Start(t)
		dir := t.TempDir()
		text := "Addresses: [" + server.Address + "]\nWithoutTLS: true\nWrappingKey: sessions\nTimeout: 10s\n"
		if err := os.WriteFile(filepath.Join(dir, redis.FileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return func(t testing.TB) session.Shared {
			t.Helper()
			settings, _, err := redis.Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			store, err := redis.Open(redis.Options{Settings: settings, Keys: keys.NewStack(wrapping(t)), Observe: func(error) {}, Unlocked: func(error) {}})
			if err != nil {
				t.Fatal(err)
			}
			return store
		}
	})
}

// wrapping returns a key directory with one key, the same one each time.
func wrapping(t testing.TB) *keys.Directory {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sessions.bin"), bytes.Repeat([]byte{7}, 32), 0o600); err != nil {
		t.Fatal(err)
	}
	directory, err := keys.Watch(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return directory
}
