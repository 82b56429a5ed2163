// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/connection"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/rewrap"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

var _ = operation(newRewrap)

func newRewrap() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rewrap PATH…|-",
		Short: "Wrap many wrapped keys again, with the newest versions of their keys or another key",
		Long: `Wraps the wrapped keys in files and directories again, with the newest versions of
their wrapping keys, or with another key. A file is a wrapped key, in binary or in
hexadecimal digits, or what encrypt-file has written, whose data stays as it is.
Other files in a directory are ignored. With -, wrapped keys are the lines of
standard input, in hexadecimal digits; standard output has the new lines, and the
old line for a key that failed.

A file is replaced at once, or stays as it is. A key that has the newest version
already stays as it is, so the command can be repeated until nothing fails. If a
key manager is not available for the time of --timeout, its keys fail, and keys of
others are rewrapped. The exit code is 0 if nothing failed, 4 if the broker cannot
be reached, and else 1.`,
		Example: `  crypto-broker rewrap --profile Orders --context "tenant a" /var/lib/orders
  crypto-broker rewrap --profile Orders --keyId orders-2027 - <keys.txt >new.txt`,
		Args: commandline.Arguments(1, -1, "files and directories, or - for standard input"),
	}
	profile, bound, key := profileFlag(cmd), contextFlag(cmd), wrappingKeyFlag(cmd, "the new wrapping key; leave it out for the newest versions of the same keys")
	parallel := cmd.Flags().Int("parallel", 8, fmt.Sprintf("how many keys are rewrapped at one time (1 to %d)", rewrap.MaxParallel))
	b := connection.Flags(cmd)
	b.Retries = true
	cmd.RunE = func(cmd *cobra.Command, paths []string) error {
		if *parallel < 1 || *parallel > rewrap.MaxParallel {
			return program.Usagef("--parallel is %d, expected 1 to %d", *parallel, rewrap.MaxParallel)
		}
		if err := b.Open(cmd); err != nil {
			return err
		}
		defer b.Close()
		request := &v1.RewrapKeyRequest{Profile: *profile, Context: []byte(*bound), KeyId: *key}
		run := &rewrap.Run{Broker: b, Request: request, Parallel: *parallel}
		if len(paths) == 1 && paths[0] == commandline.StandardInput {
			return run.Lines(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		}
		return run.Files(cmd.Context(), paths, cmd.OutOrStdout())
	}
	return cmd
}
