// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/text"
)

// output is the format in which a command writes its answer.
type output struct {
	format  string
	formats []string
}

// outputFlag adds the flag --output with these formats. The first one is the default.
func outputFlag(cmd *cobra.Command, formats ...string) *output {
	o := &output{formats: formats}
	cmd.Flags().StringVarP(&o.format, "output", "o", formats[0], "`format`: "+strings.Join(formats, ", "))
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)))
	return o
}

func (o *output) check() error {
	if !slices.Contains(o.formats, o.format) {
		return program.Usagef("--output is %q, expected %s", o.format, strings.Join(o.formats, ", "))
	}
	return nil
}

// forPrograms writes an answer as JSON or YAML, if the format is one of these.
func (o *output) forPrograms(w io.Writer, answer any) (done bool, err error) {
	switch o.format {
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return true, encoder.Encode(answer)
	case "yaml":
		data, err := yaml.Marshal(answer)
		if err != nil {
			return true, err
		}
		_, err = w.Write(data)
		return true, err
	default:
		return false, nil
	}
}

// writeTable writes a table for people. An empty cell is a dash.
func writeTable(w io.Writer, head []string, rows [][]string) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, cells := range append([][]string{head}, rows...) {
		cells = slices.Clone(cells)
		for i, cell := range cells {
			if cell == "" {
				cells[i] = "-"
			}
		}
		fmt.Fprintln(table, strings.Join(cells, "\t")) // a tabwriter fails in Flush
	}
	return table.Flush()
}

// write writes rows. If there are none, it says so on stderr, as kubectl does.
func (o *output) write(w, stderr io.Writer, rows []brokers.Row, withNamespace bool) error {
	if rows == nil {
		rows = []brokers.Row{}
	}
	if done, err := o.forPrograms(w, map[string]any{"pods": rows}); done {
		return err
	}
	if len(rows) == 0 {
		fmt.Fprintln(stderr, "No pods found.")
		return nil
	}
	head := []string{"POD", "BROKER", "SET", "SERVES", "REVISION", "VERSION", "WORKLOAD"}
	if withNamespace {
		head = append([]string{"NAMESPACE"}, head...)
	}
	if o.format == "wide" {
		head = append(head, "NODE", "IMAGE", "SINCE", "REASON", "NOTE")
	}
	var lines [][]string
	for _, r := range rows {
		digest := r.Digest
		if o.format != "wide" {
			digest = text.ShortDigest(digest)
		}
		cells := []string{r.Pod, r.Broker, r.Set, digest, revision(r.Revision), r.Version, r.Workload}
		if withNamespace {
			cells = append([]string{r.Namespace}, cells...)
		}
		if o.format == "wide" {
			since := ""
			if r.Since != nil {
				since = r.Since.UTC().Format(time.RFC3339)
			}
			cells = append(cells, r.Node, r.Image, since, r.Reason, r.Note)
		}
		lines = append(lines, cells)
	}
	return writeTable(w, head, lines)
}

func revision(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
