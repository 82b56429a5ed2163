// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/regularfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/watch"
)

// Names are the names of levels, as flags and files have them.
var Names = []string{"debug", "info", "warn", "error"}

// Level is a level that a file may change while the program runs.
type Level struct {
	slog.LevelVar
	initial slog.Level
	logger  *slog.Logger
	file    string
	// problem is the last problem of the file, or empty.
	problem string
}

// NewLevel returns the level of one of [Names].
func NewLevel(name string) *Level {
	l := &Level{}
	_ = l.initial.UnmarshalText([]byte(name)) // flags have no other names
	l.Set(l.initial)
	return l
}

// The settings for following the file of a level.
const (
	maxLevelFile = 64 // bytes
	lookInterval = 30 * time.Second
	lookOften    = time.Second // in case the file system does not report changes
	lookQuiet    = 20 * time.Millisecond
)

// Follow sets the level to the level in a file, now and after each change of the file, until ctx
// ends. While the file is missing or empty, the level is the level of NewLevel. Any other content
// changes nothing. Each change and each problem is a line of the log. The path is absolute.
func (l *Level) Follow(ctx context.Context, file string, logger *slog.Logger) {
	l.file, l.logger = file, logger
	w := watch.New(watch.Config{
		Dir: filepath.Dir(file), Matters: func(name string) bool { return name == filepath.Base(file) }, Look: l.look,
		Interval: lookInterval, Unwatched: lookOften, Quiet: lookQuiet,
	})
	go w.Run(ctx)
}

// look reads the file.
func (l *Level) look() bool {
	text, _, err := regularfile.Read(l.file, maxLevelFile)
	name := strings.TrimSpace(string(text))
	next, problem := l.initial, ""
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && name == "":
	case err != nil:
		next, problem = l.Level(), err.Error()
	case !slices.Contains(Names, name):
		next, problem = l.Level(), "the file has another content, expected debug, info, warn or error, or nothing"
	default:
		_ = next.UnmarshalText([]byte(name)) // one of Names
	}
	if problem != "" && problem != l.problem {
		l.logger.Log(context.Background(), max(slog.LevelWarn, l.Level()), "cannot read the level of the log: it stays as it is", "path", l.file, "problem", problem)
	}
	l.problem = problem
	l.change(next)
	return true
}

// change sets the level. It logs the change while the more verbose of both levels is in force.
func (l *Level) change(next slog.Level) {
	before := l.Level()
	if next == before {
		return
	}
	l.Set(min(before, next))
	l.logger.Log(context.Background(), max(slog.LevelInfo, min(before, next)), "changed the level of the log",
		"path", l.file, "logLevel", levelName(next), "logLevelBefore", levelName(before))
	l.Set(next)
}
