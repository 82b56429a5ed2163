// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file with a level, and the log of a program that follows it.
type followed struct {
	*Level
	t    *testing.T
	file string
	out  *output
}

func follow(t *testing.T, initial string) *followed {
	t.Helper()
	f := &followed{Level: NewLevel(initial), t: t, file: filepath.Join(t.TempDir(), "log-level"), out: &output{}}
	handler, _ := New(Options{To: f.out, Format: JSON, Level: f.Level, Component: "broker", Version: "1.2.3"})
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	f.Follow(ctx, f.file, slog.New(handler))
	return f
}

// write replaces the file.
func (f *followed) write(content string) {
	f.t.Helper()
	if err := os.WriteFile(f.file+".new", []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(f.file+".new", f.file); err != nil {
		f.t.Fatal(err)
	}
}

// awaitLine waits for a line, which has to be the only one.
func (f *followed) awaitLine(message, attribute, value string) {
	f.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		lines := f.out.lines(f.t)
		if len(lines) == 0 {
			continue
		}
		if len(lines) != 1 || lines[0]["msg"] != message || lines[0][attribute] != value {
			f.t.Fatalf("found %v, expected one line %q with %s=%s", lines, message, attribute, value)
		}
		return
	}
	f.t.Fatalf("found no line, expected %q", message)
}

// awaitLevel waits until the level is in force, which may be just after the line.
func (f *followed) awaitLevel(level slog.Level) {
	f.t.Helper()
	for end := time.Now().Add(time.Minute); f.Level.Level() != level; <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("found the level %s, expected %s", f.Level.Level(), level)
		}
	}
}

func TestAFileChangesTheLevelAndTheLogSaysSo(t *testing.T) {
	for _, initial := range []slog.Level{slog.LevelInfo, slog.LevelError} {
		t.Run(initial.String(), func(t *testing.T) {
			f := follow(t, initial.String())
			f.awaitLevel(initial)
			f.write("debug\n")
			f.awaitLine("changed the level of the log", "logLevel", "DEBUG")
			f.awaitLevel(slog.LevelDebug)
			f.write("warn")
			f.awaitLine("changed the level of the log", "logLevelBefore", "DEBUG")
			f.awaitLevel(slog.LevelWarn)
			f.write("loud")
			f.awaitLine("cannot read the level of the log: it stays as it is", "problem", "the file has another content, expected debug, info, warn or error, or nothing")
			f.awaitLevel(slog.LevelWarn)
			f.write("")
			f.awaitLine("changed the level of the log", "logLevel", initial.String())
			f.awaitLevel(initial)
			f.write("debug")
			f.awaitLine("changed the level of the log", "logLevel", "DEBUG")
			if err := os.Remove(f.file); err != nil {
				t.Fatal(err)
			}
			f.awaitLine("changed the level of the log", "logLevel", initial.String())
			f.awaitLevel(initial)
		})
	}
}
