// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// serveUsage is the output of broker --help.
func serveUsage() string {
	return `Serves cryptographic operations by profile over gRPC on Unix sockets.

Usage:
  broker [serve] [flags]    serve until SIGTERM, SIGINT or SIGHUP
  broker health [flags]     exit with 0 if a broker serves, else with 1
  broker version            print the version
  broker fips               print which cryptographic module serves what
  broker help               print this text

The environment variable in brackets can replace a flag. If both are given, the
flag counts. A wrong value ends the program with exit code 2. An unknown variable
that begins with CRYPTO_BROKER_ has no effect, and the log says so.

Flags:
` + flagUsages((&config{}).settings()) + `
Further variables, with the names of OpenTelemetry:
` + variableUsages((&config{}).settings()) + limitUsage() + `
Example:
  broker --profiles-dir /etc/crypto-broker/profiles --status-address :9470
`
}

// limitUsage describes the variables that OpenTelemetry's library reads itself.
func limitUsage() string {
	var text strings.Builder
	for line := range wrapped(strings.Join(tracing.LimitVariables(), ", "), program.HelpWidth-usageIndent) {
		fmt.Fprintf(&text, "  %s\n", line)
	}
	fmt.Fprintf(&text, "%*slimits of spans, which OpenTelemetry's library reads itself\n", usageIndent, "")
	return text.String()
}

func flagUsages(settings []setting) string {
	flags, err := newFlags("broker", settings)
	if err != nil {
		return err.Error() + "\n"
	}
	return flags.FlagUsagesWrapped(program.HelpWidth)
}

// printHelp prints the usage if the command line asks for help.
func printHelp(err error, stdout io.Writer, usage func() string) error {
	if errors.Is(err, pflag.ErrHelp) {
		if _, failed := io.WriteString(stdout, usage()); failed != nil {
			return failed
		}
	}
	return err
}
