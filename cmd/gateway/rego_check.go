// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/pflag"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/regochecker"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// regoCheckCommand is the command that checks modules in Rego.
const regoCheckCommand = "rego-check"

// regoCheckFlags returns the flags of the command.
func regoCheckFlags() (flags *pflag.FlagSet, socketDir *string) {
	flags = program.Flags("gateway " + regoCheckCommand)
	return flags, flags.String("socket-dir", "", "`directory` of a socket to serve the operator at; made if it does not exist. If empty, one module is read from standard input")
}

// runRegoCheck is gateway rego-check. It returns the exit code.
func runRegoCheck(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags, socketDir := regoCheckFlags()
	err := flags.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		fmt.Fprint(stdout, regoCheckUsage())
		return program.ExitOK
	}
	sockets := unixsocket.Options{Dir: *socketDir, Group: -1}
	switch {
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q, expected flags only", flags.Arg(0))
	case err == nil && *socketDir != "":
		err = sockets.Validate()
	}
	if err != nil {
		program.LastSentence(stderr, "gateway %s: %v\nSee gateway %s --help.\n", regoCheckCommand, err, regoCheckCommand)
		return program.ExitUsage
	}
	if *socketDir == "" {
		err = regochecker.CompileOne(stdin, stdout)
	} else {
		err = serveRegoCheck(ctx, sockets, stderr)
	}
	if err != nil {
		program.LastSentence(stderr, "gateway %s: %v\n", regoCheckCommand, err)
		return program.ExitFailed
	}
	return program.ExitOK
}

// serveRegoCheck serves the operator until ctx ends, which is no error.
func serveRegoCheck(ctx context.Context, options unixsocket.Options, stderr io.Writer) (err error) {
	logger, endLog := newLogger(slog.LevelInfo, stderr)
	defer endLog()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the own program: %w", err)
	}
	sockets, err := unixsocket.Listen(options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sockets.Close()) }()
	logger.Info("listening", "sockets", sockets.Paths())
	server := regochecker.Server{Command: []string{self, regoCheckCommand}, Logger: logger}
	return server.Serve(ctx, sockets.Listeners()[0])
}

func regoCheckUsage() string {
	flags, _ := regoCheckFlags()
	return `Checks modules in Rego of access policies for the operator, which asks at admission. Each module is compiled in
a process of its own, which ends after 2.5 seconds or with more than 256 MiB of memory.

Usage:
  gateway rego-check --socket-dir DIR    serve the operator until SIGTERM, SIGINT or SIGHUP
  gateway rego-check < MODULE            check one module, and write what is wrong with it in JSON

Flags:
` + flags.FlagUsagesWrapped(program.HelpWidth)
}
