// SPDX-License-Identifier: Apache-2.0

// Package runner has code that the programs below test share: for their start and end, their
// progress, their reports, and for waiting for a server.
package runner

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Main reads the arguments of the process into options and runs the program with them. The context
// ends at SIGINT, SIGTERM and SIGHUP, and at more signals if there are any, so that the program can
// end what it started. The process exits with 2 if the arguments are wrong, and with 1 if the program
// fails. name is the name of the program in messages.
func Main[Options any](name string, read func(args []string) (Options, error), run func(context.Context, Options) error, more ...os.Signal) {
	exit := func(code int, err error) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(code)
	}
	o, err := read(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		exit(2, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), append(more, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)...)
	err = run(ctx, o)
	stop()
	if err != nil {
		exit(1, err)
	}
}

// Progress writes the current step with the time to standard error.
func Progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format("15:04:05")}, args...)...)
}

// Write writes a report into a file, or to standard output if file is empty.
func Write(file, report string) error {
	if file == "" {
		_, err := fmt.Print(report)
		return err
	}
	return os.WriteFile(file, []byte(report), 0o644)
}

// Module is the version of the Go Cryptographic Module in images.
const Module = "v1.0.0"

// Build builds a program of a folder as images have it. output is its path.
func Build(ctx context.Context, folder, output, program string) error {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", output, program)
	command.Dir = folder
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOFIPS140="+Module)
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", program, err, said)
	}
	return nil
}

// Version returns the version of the source in a folder, from git, or "unknown".
func Version(folder string) string {
	described, err := exec.Command("git", "-C", folder, "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(described))
}

// startTime is how long a server may take to start.
const startTime = 30 * time.Second

// AwaitServer waits until a server takes connections at an address.
func AwaitServer(ctx context.Context, network, address string) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("no server at %s after %s: %w", address, startTime, err)
		}
	}
}

// Eventually repeats a check until it succeeds, for at most the given time. It tells what it waits for.
func Eventually(ctx context.Context, within time.Duration, what string, check func(context.Context) error) error {
	began, said := time.Now(), time.Now()
	for {
		err := check(ctx)
		switch {
		case err == nil:
			return nil
		case time.Since(began) > within:
			return fmt.Errorf("waited %s in vain until %s: %w", within, what, err)
		case time.Since(said) > 5*time.Second:
			Progress("  waiting until %s: %v", what, err)
			said = time.Now()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, errors.Join(ctx.Err(), err))
		case <-time.After(50 * time.Millisecond):
		}
	}
}
