// SPDX-License-Identifier: Apache-2.0

// Command gateway is the key gateway of Crypto Broker in a Kubernetes cluster: it uses the keys
// of key managers for the brokers of pods, and holds the connections and credentials that this
// needs. See --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys/kmip"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/openbao"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pkcs11"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/awskms"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/coredumps"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// keyProviders are the types of key providers that the gateway has.
var keyProviders = providers.Types{
	providers.KMIP:    kmip.Open,
	providers.OpenBao: openbao.Open,
	providers.PKCS11:  pkcs11.Open,
	providers.AWSKMS:  awskms.Open,
}

func main() {
	os.Exit(run(program.Context(), os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

// run runs the program and returns the exit code. Tests call it without a process.
func run(ctx context.Context, args []string, lookup func(string) (string, bool), stdout, stderr io.Writer) int {
	if len(args) == 1 && args[0] == "version" {
		fmt.Fprintln(stdout, program.VersionLine("gateway", version))
		return program.ExitOK
	}
	if len(args) > 0 && args[0] == "kms" {
		return runKMS(ctx, args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == keyAccessCommand {
		return runKeyAccess(ctx, args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == regoCheckCommand {
		return runRegoCheck(ctx, args[1:], os.Stdin, stdout, stderr)
	}
	if len(args) > 0 && args[0] == "access" {
		return runAccess(args[1:], os.Stdin, stdout, stderr)
	}
	c, err := parse(args, lookup)
	if errors.Is(err, pflag.ErrHelp) {
		fmt.Fprint(stdout, usage())
		return program.ExitOK
	}
	if err != nil {
		program.LastSentence(stderr, "gateway: %v\nSee gateway --help.\n", err)
		return program.ExitUsage
	}
	if err := operate(ctx, c, stderr); err != nil {
		program.LastSentence(stderr, "gateway: %v\n", err)
		return program.ExitFailed
	}
	return program.ExitOK
}

// operate runs the gateway of the cluster that the environment names until ctx ends.
func operate(ctx context.Context, c *config, logTo io.Writer) error {
	logger, endLog := newLogger(c.level, logTo)
	defer endLog()
	if err := protect(c.tlsProvider, logger); err != nil {
		return err
	}
	kubernetes, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("no access to a cluster: %w", err)
	}
	g, err := prepare(ctx, kubernetes, c, keyProviders, logger)
	if err != nil {
		return err
	}
	if err := g.run(ctx); err != nil {
		return err
	}
	endLog()
	logger.Info("stopped")
	return nil
}

// protect keeps credentials and keys out of core dumps, and chooses the provider of TLS. It must
// be called before the first credential is read and the first connection is made.
func protect(provider string, logger *slog.Logger) error {
	if err := coredumps.Forbid(); err != nil {
		logger.Warn("cannot turn core dumps off: a dump could contain credentials", "error", err)
	}
	if err := tlsprovider.Use(provider, false); err != nil {
		return fmt.Errorf("--tls-provider: %w", err)
	}
	logger.Info("TLS for key managers", "provider", tlsprovider.Current())
	return nil
}

func usage() string {
	return `Uses the keys of key managers for the brokers of pods. Brokers get signatures, ciphertexts and public
keys, and never a private or an AES key.

Usage:
  gateway [flags]       run until SIGTERM, SIGINT or SIGHUP
  gateway kms           serve the API server's encryption of Secrets (KMS v2); see gateway kms --help
  gateway key-access    release data keys of OpenTDF files, with or without a cluster; see gateway key-access --help
  gateway rego-check    check policies in Rego for the operator; see gateway rego-check --help
  gateway access        try policies, also those in Rego; see gateway access --help
  gateway version       print the version

The cluster comes from the pod's service account, or else from the file that the environment variable
KUBECONFIG names. KeyProviders and ClusterKeyProviders say which key managers there are. The signed profiles
of a pod's namespace say which keys the pod may use. A wrong value ends the program with exit code 2 and a
sentence that says what was expected.

The status port has /healthz, /readyz and /metrics. The gateway is ready once all key providers are read, and
while its certificate is valid.

Flags:
` + (&config{}).flags().FlagUsagesWrapped(program.HelpWidth)
}
