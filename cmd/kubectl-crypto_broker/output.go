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
)

// output is how rows are written.
type output struct{ format string }

var formats = []string{"table", "wide", "json", "yaml"}

func outputFlag(cmd *cobra.Command) *output {
	o := &output{}
	cmd.Flags().StringVarP(&o.format, "output", "o", "table", "`format`: "+strings.Join(formats, ", "))
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)))
	return o
}

func (o *output) check() error {
	if !slices.Contains(formats, o.format) {
		return program.Usagef("--output is %q, expected %s", o.format, strings.Join(formats, ", "))
	}
	return nil
}

// write writes rows. If there are none, it says so on stderr, as kubectl does.
func (o *output) write(w, stderr io.Writer, rows []brokers.Row, withNamespace bool) error {
	if rows == nil {
		rows = []brokers.Row{}
	}
	switch o.format {
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(map[string]any{"pods": rows})
	case "yaml":
		data, err := yaml.Marshal(map[string]any{"pods": rows})
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	}
	if len(rows) == 0 {
		fmt.Fprintln(stderr, "No pods found.")
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	line := func(cells ...string) {
		for i, cell := range cells {
			if cell == "" {
				cells[i] = "-"
			}
		}
		fmt.Fprintln(table, strings.Join(cells, "\t")) // a tabwriter fails in Flush
	}
	head := []string{"POD", "BROKER", "SET", "SERVES", "REVISION", "VERSION", "WORKLOAD"}
	if withNamespace {
		head = append([]string{"NAMESPACE"}, head...)
	}
	if o.format == "wide" {
		head = append(head, "NODE", "IMAGE", "SINCE", "REASON", "NOTE")
	}
	line(head...)
	for _, r := range rows {
		cells := []string{r.Pod, r.Broker, r.Set, short(r.Digest, o.format == "wide"), revision(r.Revision), r.Version, r.Workload}
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
		line(cells...)
	}
	return table.Flush()
}

// short returns the beginning of a digest, long enough to compare.
func short(digest string, whole bool) string {
	if whole {
		return digest
	}
	digest = strings.TrimPrefix(digest, "sha256:")
	return digest[:min(len(digest), 12)]
}

func revision(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
