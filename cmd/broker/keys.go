// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
)

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
		message := "the broker cannot use a key, or not its new version"
		if problem.Warning {
			message = "warning about a file of the key directory"
		}
		logger.Warn(message, "path", problem.Path, "key", problem.Key, "problem", problem.Message)
	}
}
