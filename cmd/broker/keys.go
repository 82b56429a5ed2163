// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
)

// useKeys follows the key directory and the key providers, and connects to the key gateway. It
// returns nil if the broker has none of them. closeKeys waits for their end after the context
// has ended.
func (c *config) useKeys(ctx context.Context, metrics *telemetry.Metrics, use *keyUse, logger *slog.Logger) (stack *keys.Stack, closeKeys func(), err error) {
	var ends []func()
	closeKeys = func() {
		for _, end := range ends {
			end()
		}
	}
	stack = keys.NewStack(nil)
	if c.keysDir != "" {
		directory, err := watchKeys(ctx, c.keysDir, metrics, use, logger)
		if err != nil {
			return nil, closeKeys, err
		}
		stack, ends = keys.NewStack(directory), append(ends, directory.Wait)
	}
	if c.providersDir != "" {
		followed, err := followProviders(ctx, c.providersDir, stack, logger)
		if err != nil {
			return nil, closeKeys, err
		}
		ends = append(ends, followed.Wait)
	}
	gateway, err := c.useGateway(stack, logger)
	if err != nil {
		return nil, closeKeys, err
	}
	if gateway != nil {
		ends = append(ends, gateway.Close)
	}
	if len(ends) == 0 {
		return nil, closeKeys, nil
	}
	return stack, closeKeys, nil
}

// watchKeys follows the key directory, and logs and counts its changes.
func watchKeys(ctx context.Context, dir string, metrics *telemetry.Metrics, use *keyUse, logger *slog.Logger) (*keys.Directory, error) {
	directory, err := keys.Watch(ctx, dir,
		keys.WithObserver(func(event keys.Event) {
			metrics.Keys(event.Keys, event.Unusable)
			logKeys(logger, dir, event)
			use.keysChanged()
		}),
		keys.WithWatchProblem(func(problem error) {
			if problem != nil {
				logger.Warn("cannot watch the key directory: the broker reads it each second instead", "directory", dir, "error", problem)
				return
			}
			logger.Info("watching the key directory", "directory", dir)
		}),
	)
	if err != nil {
		return nil, err
	}
	use.useKeys(directory)
	return directory, nil
}

// logKeys logs a change of the key directory.
func logKeys(logger *slog.Logger, dir string, event keys.Event) {
	if event.Err != nil {
		logger.Warn("cannot read the key directory: the broker goes on with the keys that it has", "directory", dir, "keys", event.Keys, "error", event.Err)
		return
	}
	logger.Info("keys loaded", "directory", dir, "keys", event.Keys, "unusable", event.Unusable)
	for i, problem := range event.Problems {
		if i == maxLoggedProblems {
			logger.Warn("more problems with keys are not logged", "problems", len(event.Problems)-i)
			return
		}
		message := "the broker cannot use a key, or cannot use its new version"
		if problem.Warning {
			message = "warning about a file of the key directory"
		}
		logger.Warn(message, "path", problem.Path, "key", problem.Key, "problem", problem.Message)
	}
}
