// SPDX-License-Identifier: Apache-2.0

// Command broker serves cryptographic operations by profile over gRPC on Unix sockets. It needs
// only a directory with profiles, see --help.
package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/grpclog"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

func main() {
	// Make the context first, so that a signal during the start also stops the broker cleanly.
	os.Exit(run(program.Context(), os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

// run runs the program and returns the exit code. Tests call it without a process.
func run(ctx context.Context, args []string, lookup func(string) (string, bool), stdout, stderr io.Writer) int {
	// gRPC's own log quotes what clients send, and the broker gets gRPC's errors anyway.
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
	case "fips":
		err = fipsCommand(args, lookup, stdout)
	case "help":
		_, err = io.WriteString(stdout, serveUsage())
	default:
		err = program.Usagef("unknown command %q, expected serve (the default), health, version, fips or help", command)
	}
	switch {
	case err == nil, errors.Is(err, pflag.ErrHelp):
		return program.ExitOK
	case program.IsUsage(err):
		program.LastSentence(stderr, "broker: %v (see broker --help)\n", err)
		return program.ExitUsage
	default:
		program.LastSentence(stderr, "broker: %v\n", err)
		return program.ExitFailed
	}
}
