// SPDX-License-Identifier: Apache-2.0

// Package program has code that all programs of this project share: exit codes, errors of the
// command line, flags, the version, and the handling of signals. All programs parse flags with
// github.com/spf13/pflag. Programs with several commands also use package subcommands.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// Exit codes. A program may have further exit codes, which its --help names.
const (
	ExitOK     = 0
	ExitFailed = 1
	// ExitUsage means that the command line or the environment is wrong.
	ExitUsage = 2
)

// HelpWidth is the width in columns that --help is wrapped to.
const HelpWidth = 100

// UsageError is an error of the command line or the environment. A program that
// returns one ends with [ExitUsage].
type UsageError struct{ message string }

// Error implements error.
func (e UsageError) Error() string { return e.message }

// Usagef returns a [UsageError].
func Usagef(format string, args ...any) error {
	return UsageError{fmt.Sprintf(format, args...)}
}

// IsUsage reports whether an error is or wraps a [UsageError].
func IsUsage(err error) bool { return errors.As(err, new(UsageError)) }

// Flags returns an empty set of flags that keeps their order in --help, returns
// errors and prints nothing by itself.
func Flags(name string) *pflag.FlagSet {
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Usage = func() {}
	return flags
}

// maxSentence is how long a program waits until its last sentence is written.
const maxSentence = time.Second

// LastSentence writes why a program ends. It returns after a second if nobody takes the sentence, because a program does not
// wait for its log.
func LastSentence(to io.Writer, format string, args ...any) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		fmt.Fprintf(to, format, args...)
	}()
	select {
	case <-written:
	case <-time.After(maxSentence):
	}
}

// Context returns a context that ends at the first SIGINT or SIGTERM, or at SIGHUP unless the
// program was started with SIGHUP ignored, as by nohup. A second signal ends the process at once.
func Context() context.Context {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop)
	return ctx
}

// Version returns the version of the running program: release if it is not empty, else
// the version that the Go toolchain derives from the commit, else "(devel)". A release
// is set by -ldflags "-X main.version=v1.2.3".
func Version(release string) string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// VersionLine returns the line that a program prints for its version, without the
// line break.
func VersionLine(name, release string) string {
	return fmt.Sprintf("%s %s %s %s/%s", name, Version(release), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
