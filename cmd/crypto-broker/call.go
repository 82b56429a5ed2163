// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/connection"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// caller is a command that calls a broker once, or repeatedly.
type caller struct {
	*connection.Broker
	printer
	cmd    *cobra.Command
	loop   int // milliseconds
	warned bool
}

const (
	minLoop, maxLoop = 1, 1000
	// noLoop is the default value of released command lines.
	noLoop = -1000001
)

// newCaller adds the flags of all calling commands to a command.
func newCaller(cmd *cobra.Command) *caller {
	c := &caller{Broker: connection.Flags(cmd), cmd: cmd}
	c.output = commandline.ChoiceFlag(cmd, "output", "o", "what to print: log, json or text", commandline.FormatLog, commandline.FormatJSON, commandline.FormatText)
	cmd.Flags().IntVar(&c.loop, "loop", noLoop, fmt.Sprintf("repeat the call with this many milliseconds in between (%d to %d), until interrupted", minLoop, maxLoop))
	cmd.Flag("loop").DefValue = "0" // so that the help does not print the internal default
	return c
}

// profileFlag gives a command the flag --profile.
func profileFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("profile", "Default", "name of the profile")
}

// run calls the broker as often as the flags say and prints the results. It logs the announcement
// first.
func (c *caller) run(announcement string, announced []any, once func(context.Context) (*result, error)) error {
	if c.loop != noLoop && (c.loop < minLoop || c.loop > maxLoop) {
		return program.Usagef("--loop is %d, expected %d to %d (milliseconds)", c.loop, minLoop, maxLoop)
	}
	if err := c.open(c.cmd); err != nil {
		return err
	}
	if err := c.Open(c.cmd); err != nil {
		return err
	}
	defer c.Close()
	ctx := c.cmd.Context()
	c.log(announcement, announced...)
	if c.loop == noLoop {
		if err := c.once(ctx, once); err != nil {
			return err
		}
		c.log("Closing crypto broker library connection")
		return nil
	}
	// An interrupt ends the loop without an error. A bad result, such as an invalid signature,
	// does not end the loop.
	pause := time.NewTicker(time.Duration(c.loop) * time.Millisecond)
	defer pause.Stop()
	for ctx.Err() == nil {
		err := c.once(ctx, once)
		if err != nil && ctx.Err() == nil && !errors.Is(err, errNotValid) && !errors.Is(err, errNotServing) {
			return err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
	c.log("Received SIGTERM signal")
	c.log("Closing crypto broker library connection")
	return nil
}

// once makes one call and prints its result.
func (c *caller) once(ctx context.Context, once func(context.Context) (*result, error)) error {
	var r *result
	start := time.Now()
	err := c.Call(ctx, func(ctx context.Context) (err error) {
		r, err = once(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if err := c.print(r, time.Since(start)); err != nil {
		return err
	}
	return r.verdict
}

// warning returns the field for a deprecated profile, and prints a warning once.
func (c *caller) warning(metadata *v1.Metadata) []field {
	d := connection.DeprecationOf(metadata)
	if d == nil {
		return nil
	}
	if !c.warned {
		c.warned = true
		connection.WarnDeprecated(c.Stderr, metadata)
	}
	return []field{{"deprecation", d}}
}
