// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"log/slog"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/logs"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// newLogger returns the logger of the broker, which also gets what libraries write to the package
// log. end writes how many lines the limit on repeats has left out.
func newLogger(ctx context.Context, c *config, stdout, stderr io.Writer) (logger *slog.Logger, end func()) {
	out := stderr
	if c.logOutput == "stdout" {
		out = stdout
	}
	level := logs.NewLevel(c.logLevel)
	handler, end := logs.New(logs.Options{To: out, Format: c.logFormat, Level: level, Component: "broker", Version: program.Version(version)})
	logger = slog.New(handler)
	slog.SetDefault(logger)
	if c.logLevelFile != "" {
		level.Follow(ctx, c.logLevelFile, logger)
	}
	return logger, end
}

// maxLoggedProblems bounds the lines about one file, because a wrong file may have a
// problem in each of its lines.
const maxLoggedProblems = 50

// logLook logs the result of reading the profile directory, unless nothing changed.
func logLook(logger *slog.Logger, event directory.Event) {
	switch event.Result {
	case directory.ResultUnchanged:
		return
	case directory.ResultLoaded:
		logger.Info("profiles loaded", "digest", event.Set.Digest(), "revision", event.Revision, "kept", event.Kept,
			"served", event.Set.Len(), "rejected", event.Set.Rejected())
		logWithdrawn(logger, event.Withdrawn)
		logProblems(logger, "warning about a profile that is served", event.Set.Warnings())
	case directory.ResultRejected:
		message := "profiles rejected: the broker goes on serving the last good set"
		if event.Reason == directory.NoProfiles {
			message = "no valid profiles yet: the broker waits for a valid profile file"
		}
		attributes := []any{slog.Any("reason", event.Reason), slog.Int("problems", len(event.Problems))}
		if event.Err != nil {
			attributes = append(attributes, slog.Any("error", event.Err))
		}
		logger.Warn(message, attributes...)
	}
	logProblems(logger, "problem with a profile", event.Problems)
}

func logWithdrawn(logger *slog.Logger, withdrawn []directory.Withdrawn) {
	for i, out := range withdrawn {
		if i == maxLoggedProblems {
			logger.Warn("more profiles that the broker served are out of service", "profiles", len(withdrawn)-i)
			return
		}
		logger.Warn("a profile that the broker served is out of service: its calls fail with FAILED_PRECONDITION until the profile in the file is valid",
			"profile", out.Profile, "since", out.Since)
	}
}

func logProblems(logger *slog.Logger, message string, problems profile.Problems) {
	for i, problem := range problems {
		if i == maxLoggedProblems {
			logger.Warn("more problems with profiles are not logged", "problems", len(problems)-i)
			return
		}
		logger.Warn(message, "file", problem.File, "line", problem.Line, "column", problem.Column,
			"profile", problem.Profile, "field", problem.Field, "problem", problem.Message)
	}
}

func logWatch(logger *slog.Logger, dir string, problem error) {
	if problem != nil {
		logger.Warn("cannot watch the profile directory: the broker reads it each second instead", "directory", dir, "error", problem)
		return
	}
	logger.Info("watching the profile directory", "directory", dir)
}
