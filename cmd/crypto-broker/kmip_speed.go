// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/kmipspeed"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// kmipSpeed is the command line of kmip-speed.
type kmipSpeed struct {
	servers                        []string
	certificate, key, authorities  string
	serverName                     string
	clients                        []int
	repeat                         int
	noReuse, compare, showVersions bool
	operations                     map[string]*bool
	output                         string
	charts                         string
}

func newKMIPSpeed() *cobra.Command {
	s := &kmipSpeed{operations: map[string]*bool{}}
	cmd := &cobra.Command{
		Use:   "kmip-speed",
		Short: "Measure a KMIP key manager",
		Long: `Measures how many operations a minute a KMIP key manager does, by KMIP 1.0 to 1.4
over mutual TLS: reading an AES-256 key, wrapping it (RFC 3394), and creating AES-256
keys, RSA-2048 and P-256 key pairs. Without a choice all five are measured.

Each client makes --repeat operations one after the other. Keys that were made are
destroyed at the end. Where operations fail, no times are printed, and the exit code is 1.

Flags may have one dash and underscores, too: -repeat 50 -no_reuse -create_rsa.`,
		Example: `  crypto-broker kmip-speed --server kms.example.com --cert client.crt --key client.key --ca ca.crt
  crypto-broker kmip-speed --server a.example.com,b.example.com:5696 --cert client.crt --key client.key \
    --ca ca.crt --concurrency 1,5,10 --compare --output csv`,
		Args: commandline.Arguments(0, 0, "none"),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&s.servers, "server", nil, "`host` or host:port of a server; several share the load, and the first one creates keys (port 5696)")
	flags.StringVar(&s.certificate, "cert", "", "`file` with the client's certificate and its issuers, PEM")
	flags.StringVar(&s.key, "key", "", "`file` with the client's private key, PEM")
	flags.StringVar(&s.authorities, "ca", "", "`file` with the certificate authorities of the servers, PEM (the authorities of the system)")
	flags.StringVar(&s.serverName, "server-name", "", "`name` in the servers' certificates (the host)")
	flags.IntSliceVar(&s.clients, "concurrency", []int{1}, "`numbers` of clients at the same time, 1 to 10, one measurement each")
	flags.IntVar(&s.repeat, "repeat", 100, "`number` of operations of each client")
	flags.BoolVar(&s.noReuse, "no-reuse", false, "connect for each operation, instead of reusing connections")
	flags.BoolVar(&s.compare, "compare", false, "measure both, reused connections and a connection for each operation")
	for _, operation := range kmipspeed.Operations {
		s.operations[operation.Flag] = flags.Bool(operation.Flag, false, "measure: "+operation.Name)
	}
	flags.BoolVar(&s.showVersions, "versions", false, "print the protocol versions of each server, and measure nothing")
	flags.StringVar(&s.output, "output", "text", "`form` of the table: text or csv")
	flags.StringVar(&s.charts, "charts", "", "`folder` for a chart of each operation, SVG")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return s.run(cmd) }
	return cmd
}

func (s *kmipSpeed) run(cmd *cobra.Command) error {
	config, err := s.config(cmd)
	if err != nil {
		return err
	}
	if s.showVersions {
		return s.printVersions(cmd, config.TLS)
	}
	rows, err := kmipspeed.Measure(cmd.Context(), config)
	if len(rows) == 0 && err != nil {
		return err
	}
	write := kmipspeed.WriteTable
	if s.output == "csv" {
		write = kmipspeed.WriteCSV
	}
	if err := write(cmd.OutOrStdout(), rows); err != nil {
		return err
	}
	if err := s.writeCharts(config.Operations, rows); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(rows, func(r kmipspeed.Row) bool { return r.Failed > 0 }) {
		return commandline.ErrFound
	}
	return nil
}

// config returns what to measure, and checks the command line.
func (s *kmipSpeed) config(cmd *cobra.Command) (kmipspeed.Config, error) {
	c := kmipspeed.Config{Servers: s.servers, Clients: s.clients, Repeat: s.repeat, Progress: func(what string) {
		fmt.Fprintln(cmd.ErrOrStderr(), what)
	}}
	switch {
	case len(s.servers) == 0:
		return c, program.Usagef("found no --server, expected at least one")
	case s.certificate == "" || s.key == "":
		return c, program.Usagef("expected --cert and --key: key managers demand a certificate of the client")
	case s.repeat < 1 || s.repeat > kmipspeed.MaxRepeat:
		return c, program.Usagef("found --repeat %d, expected 1 to %d", s.repeat, kmipspeed.MaxRepeat)
	case s.output != "text" && s.output != "csv":
		return c, program.Usagef("found --output %q, expected text or csv", s.output)
	case s.noReuse && s.compare:
		return c, program.Usagef("found --no-reuse and --compare, expected one of them")
	case len(s.clients) == 0:
		return c, program.Usagef("found an empty --concurrency, expected numbers from 1 to %d", kmipspeed.MaxClients)
	}
	for _, n := range s.clients {
		if n < 1 || n > kmipspeed.MaxClients {
			return c, program.Usagef("found --concurrency %d, expected 1 to %d", n, kmipspeed.MaxClients)
		}
	}
	c.Reuse = []bool{!s.noReuse}
	if s.compare {
		c.Reuse = []bool{false, true}
	}
	for _, operation := range kmipspeed.Operations {
		if *s.operations[operation.Flag] {
			c.Operations = append(c.Operations, operation)
		}
	}
	if len(c.Operations) == 0 {
		c.Operations = kmipspeed.Operations
	}
	var err error
	c.TLS, err = s.tls()
	return c, err
}

func (s *kmipSpeed) tls() (c tlsprovider.Config, err error) {
	c.ServerName = s.serverName
	if c.Certificate, err = os.ReadFile(s.certificate); err != nil {
		return c, fmt.Errorf("read the client's certificate: %w", err)
	}
	if c.Key, err = os.ReadFile(s.key); err != nil {
		return c, fmt.Errorf("read the client's key: %w", err)
	}
	if s.authorities != "" {
		if c.Authorities, err = os.ReadFile(s.authorities); err != nil {
			return c, fmt.Errorf("read the authorities: %w", err)
		}
	}
	switch _, err = tlsprovider.New(c); {
	case errors.Is(err, tlsprovider.ErrAuthorities):
		return c, fmt.Errorf("%s: %w", s.authorities, err)
	case err != nil:
		return c, fmt.Errorf("%s and %s cannot be used: %w", s.certificate, s.key, err)
	}
	return c, nil
}

func (s *kmipSpeed) printVersions(cmd *cobra.Command, config tlsprovider.Config) error {
	client, err := tlsprovider.New(config)
	if err != nil {
		return err
	}
	for _, server := range s.servers {
		versions, err := kmipspeed.Versions(cmd.Context(), server, client)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", server, strings.Join(versions, " "))
	}
	return nil
}

func (s *kmipSpeed) writeCharts(operations []kmipspeed.Operation, rows []kmipspeed.Row) error {
	if s.charts == "" {
		return nil
	}
	for _, operation := range operations {
		of := slices.DeleteFunc(slices.Clone(rows), func(r kmipspeed.Row) bool { return r.Operation != operation.Name })
		var svg strings.Builder
		if err := kmipspeed.WriteChart(&svg, of); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(s.charts, kmipspeed.ChartName(operation.Name)), []byte(svg.String()), 0o644); err != nil { //nolint:gosec // for everybody to look at
			return fmt.Errorf("write a chart: %w", err)
		}
	}
	return nil
}

// withTwoDashes rewrites flags of kmip-speed to the form of the other commands: -no_reuse becomes
// --no-reuse. Other tools that measure key managers use flags with one dash.
func withTwoDashes(args []string) []string {
	if len(args) == 0 || args[0] != "kmip-speed" {
		return args
	}
	changed := slices.Clone(args)
	for i, arg := range changed {
		name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !strings.HasPrefix(arg, "-") || len(name) < 2 {
			continue
		}
		changed[i] = "--" + strings.ReplaceAll(name, "_", "-")
		if hasValue {
			changed[i] += "=" + value
		}
	}
	return changed
}
