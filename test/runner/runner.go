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
	"os/signal"
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
