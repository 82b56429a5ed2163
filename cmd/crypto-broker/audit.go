// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/broker/pemtext"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/subcommands"
)

func newAudit() *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Check audit records"}
	cmd.AddCommand(newAuditVerify())
	subcommands.Only(cmd)
	return cmd
}

func newAuditVerify() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify FILE|-...",
		Short: "Check that no audit record was removed, changed, moved or added",
		Long: `Checks that no audit record was removed, changed, moved or added since the broker
wrote it. A log that has several files is named oldest file first. - stands for
standard input.

With --key, all checkpoints have to be signed by that key. Without it, the command uses
the keys that the log itself names, so it does not notice if somebody has replaced the
whole log by another one.

Records after the last checkpoint, 10 seconds at most, are not signed: anybody who can
write the file can change them. The output has their number.

With --collected, the files come from a collector: their lines are audit records of
many brokers in any order, some of them twice, or requests of OTLP in JSON that have
such records. Lines of other logs are passed over. Each chain is checked from its first
line on. All records have to fit into the memory.

The exit code is 1 if the log is damaged.`,
		Example: `  crypto-broker audit verify --key audit.pub audit.jsonl.2 audit.jsonl.1 audit.jsonl
  crypto-broker audit verify --collected logs.json`,
		Args: commandline.Arguments(1, -1, "at least one file or -"),
	}
	output := commandline.ChoiceFlag(cmd, "output", "o", "text or json", commandline.FormatText, commandline.FormatJSON)
	keyFile := cmd.Flags().String("key", "", "`file` with the public key of the checkpoints, PEM")
	collected := cmd.Flags().Bool("collected", false, "the files come from a collector, with records of many brokers in any order")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var key crypto.PublicKey
		if cmd.Flags().Changed("key") {
			var err error
			if key, err = readAuditKey(*keyFile); err != nil {
				return err
			}
		}
		v := audit.NewVerifier(key)
		var damage *audit.DamageError
		if err := verifyFiles(v, args, *collected, cmd.InOrStdin()); err != nil && !errors.As(err, &damage) {
			return err
		}
		if err := printAudit(cmd.OutOrStdout(), output.Value, v.Report(), damage); err != nil {
			return err
		}
		if damage != nil {
			return commandline.ErrFound
		}
		return nil
	}
	return cmd
}

func readAuditKey(name string) (crypto.PublicKey, error) {
	if name == "" {
		return nil, program.Usagef("--key is empty, expected the file with the public key; leave the flag out to trust the keys that the log names")
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	block, _ := pem.Decode(pemtext.WithoutMark(text))
	if block == nil || block.Type != "PUBLIC KEY" {
		return nil, program.Usagef("--key: %s has no PEM block \"PUBLIC KEY\"", name)
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err == nil {
		err = audit.CheckKey(key)
	}
	if err != nil {
		return nil, program.Usagef("--key: the key in %s cannot be used: %v", name, err)
	}
	return key, nil
}

// verifyFiles checks the files of a log, or of a collector.
func verifyFiles(v *audit.Verifier, names []string, collected bool, stdin io.Reader) error {
	var lines audit.Collected
	read := v.Read
	if collected {
		read = lines.Read
	}
	for _, name := range names {
		if err := readFile(name, stdin, read); err != nil {
			return err
		}
	}
	if !collected {
		return nil
	}
	return lines.Verify(v)
}

func readFile(name string, stdin io.Reader, read func(name string, text io.Reader) error) error {
	if name == "-" {
		return read("standard input", stdin)
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return read(name, file)
}

// auditResult is the result as JSON.
type auditResult struct {
	Intact      bool     `json:"intact"`
	Damage      string   `json:"damage,omitempty"`
	Records     int      `json:"records"`
	Chains      int      `json:"chains"`
	Checkpoints int      `json:"checkpoints"`
	Lost        uint64   `json:"lost"`
	Unsigned    int      `json:"unsignedLines"`
	Keys        []string `json:"publicKeys"`
	Notes       []string `json:"notes"`
}

func printAudit(out io.Writer, format string, r audit.Report, damage *audit.DamageError) error {
	result := auditResult{damage == nil, "", r.Records, r.Chains, r.Checkpoints, r.Lost, r.Unsigned, append([]string{}, r.Keys...), append([]string{}, r.Notes...)}
	if damage != nil {
		result.Damage = damage.Error()
	}
	if format == commandline.FormatJSON {
		return commandline.WriteJSON(out, result)
	}
	verdict := "intact"
	if damage != nil {
		verdict = "DAMAGED: " + result.Damage + "\nwhat was checked before it:"
	}
	if _, err := fmt.Fprintf(out, "%s\n%d records in %d chains, %d checkpoints, %d lines that no checkpoint signs, %d records lost by the broker\n",
		verdict, r.Records, r.Chains, r.Checkpoints, r.Unsigned, r.Lost); err != nil {
		return err
	}
	for _, key := range r.Keys {
		if _, err := fmt.Fprintf(out, "signed by %s\n", key); err != nil {
			return err
		}
	}
	for _, note := range r.Notes {
		if _, err := fmt.Fprintf(out, "note: %s\n", note); err != nil {
			return err
		}
	}
	return nil
}
