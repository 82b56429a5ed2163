// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
	"github.com/crypto-broker/crypto-broker-operator/broker/session/redis"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

func (c *config) sessionRedisSetting() setting {
	return setting{
		name: contract.SessionRedisDirFlag, env: "CRYPTO_BROKER_SESSION_REDIS_DIR", kind: "path", set: absolutePath(&c.sessionRedisDir),
		usage: "directory with the file " + redis.FileName + ", which names the Redis servers for sessions of profiles with Session.Store redis, and with the passwords and certificates for them; without it such profiles have no sessions",
	}
}

// useRedis opens the store of shared sessions in Redis. It does not wait for Redis. The option is
// nil if the settings name no Redis.
func (c *config) useRedis(stack *keys.Stack, metrics *telemetry.Metrics, logger *slog.Logger) (server.Option, error) {
	if c.sessionRedisDir == "" {
		return nil, nil
	}
	settings, warnings, err := redis.Read(c.sessionRedisDir)
	if err != nil {
		return nil, program.Usagef("--%s: %v", contract.SessionRedisDirFlag, err)
	}
	for _, warning := range warnings {
		logger.Warn("warning about a file of the settings for Redis", "problem", warning)
	}
	if settings.KeysInClear {
		logger.Warn("keys of sessions are in Redis without encryption: anybody who can read Redis can decrypt all requests", "directory", c.sessionRedisDir)
	}
	options := redis.Options{
		Settings: settings,
		Observe: func(problem error) {
			if problem != nil {
				logger.Warn("sessions in Redis are not available: the broker refuses their requests until they are", "error", problem)
				return
			}
			logger.Info("sessions in Redis are available", "addresses", settings.Addresses)
		},
		Unlocked: func(err error) {
			logger.Warn("keys of sessions in Redis are kept in memory that is not locked, so they may be swapped or be in a core dump", "error", err)
		},
	}
	if stack != nil {
		options.Keys = stack
	}
	store, err := redis.Open(options)
	if err != nil {
		return nil, program.Usagef("--%s: %s: %v", contract.SessionRedisDirFlag, redis.FileName, err)
	}
	metrics.ServeSharedSessions(store.Serves)
	return server.WithSharedSessions(store), nil
}
