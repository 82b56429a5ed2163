// SPDX-License-Identifier: Apache-2.0

// Command broker serves cryptographic operations by profile over gRPC on Unix
// sockets. It needs a directory with profiles and nothing else; see --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/grpclog"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// errUsage marks an error of the command line or the environment.
var errUsage = errors.New("usage")

func main() {
	// From the first moment on: a broker that is told to stop while it starts
	// stops cleanly, too. A second signal ends it at once.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

// run is the program less its process: it returns the exit code.
func run(ctx context.Context, args []string, lookup func(string) (string, bool), stdout, stderr io.Writer) int {
	// gRPC's own log quotes what clients sent, and its errors reach the caller of
	// the function anyway.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))

	command := "serve"
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		command, args = args[0], args[1:]
	}
	var err error
	switch command {
	case "serve":
		err = serveCommand(ctx, args, lookup, stdout, stderr)
	case "health":
		err = healthCommand(ctx, args, lookup, stdout)
	case "version":
		err = versionCommand(args, lookup, stdout)
	case "help":
		_, err = io.WriteString(stdout, serveUsage())
	default:
		err = usagef("unknown command %q, expected serve (the default), health, version or help", command)
	}
	switch {
	case err == nil, errors.Is(err, pflag.ErrHelp):
		return exitOK
	case errors.Is(err, errUsage):
		fmt.Fprintf(stderr, "broker: %v (see broker --help)\n", err)
		return exitUsage
	default:
		fmt.Fprintf(stderr, "broker: %v\n", err)
		return exitFailed
	}
}

// usageError is an error of the command line or the environment.
type usageError struct{ message string }

func (e usageError) Error() string        { return e.message }
func (e usageError) Is(target error) bool { return target == errUsage }

func usagef(format string, args ...any) error {
	return usageError{fmt.Sprintf(format, args...)}
}
