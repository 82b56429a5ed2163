// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/subcommands"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/bundle"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/check"
)

func newBundle(cluster *cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Write an archive for support, without secrets",
		Long: `Writes an archive (tar.gz) with what support needs to know of an installation: the findings of check, the operator's
Deployment, logs and events, webhook configurations, profiles with their status, the sets of profiles of namespaces, and
the state of the broker in each pod. With -n it has the pods, profiles and events of one namespace.

The archive has no Secret, no value of an environment variable and no private key. Of each object it has only the fields
that support needs. MANIFEST.txt in it says which files there are, what it never has, and what could not be read. Look
at the archive before you give it away.`,
		Example: `  ` + name + ` bundle
  ` + name + ` bundle -n shop -f shop.tar.gz`,
		Args:              subcommands.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cluster.flags(cmd, false)
	operatorNamespace := cluster.operatorFlag(cmd)
	file := cmd.Flags().StringP("file", "f", "", "`file` to write, which must not exist (default crypto-broker-bundle-TIME.tar.gz)")
	cobra.CheckErr(cmd.MarkFlagFilename("file"))
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		client, namespace, err := cluster.connect()
		if err != nil {
			return err
		}
		if _, err := client.Discovery().ServerVersion(); err != nil {
			return err
		}
		now := time.Now()
		target := *file
		if target == "" {
			target = "crypto-broker-bundle-" + now.UTC().Format("20060102-150405") + ".tar.gz"
		}
		archive, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("the file %s exists, expected a name that is free", target)
		}
		if err != nil {
			return err
		}
		collector := bundle.Collector{Client: client, Namespace: cluster.overrides.Context.Namespace, Now: now, Checker: &check.Checker{
			Client: client, Version: program.Version(version), Namespace: namespace, OperatorNamespace: *operatorNamespace,
		}}
		leftOut, err := collector.Write(cmd.Context(), archive)
		if err = errors.Join(err, archive.Close()); err != nil {
			return errors.Join(err, os.Remove(target))
		}
		for _, line := range leftOut {
			fmt.Fprintln(cmd.ErrOrStderr(), noteMark+"left out: "+line)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Wrote %s. Its MANIFEST.txt says what is in it and what was left out.\n", target)
		return nil
	}
	return cmd
}
