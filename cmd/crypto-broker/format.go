// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// The values of --output.
const (
	formatText = "text"
	formatJSON = "json"
	// formatLog is the output of released command lines: log lines.
	formatLog = "log"
)

// choice is a flag with a few values. Their case does not matter.
type choice struct {
	value string
	among []string
}

// String implements pflag.Value.
func (c *choice) String() string { return c.value }

// Type implements pflag.Value.
func (c *choice) Type() string { return "string" }

// Set implements pflag.Value.
func (c *choice) Set(text string) error {
	lower := strings.ToLower(text)
	if !slices.Contains(c.among, lower) {
		last := len(c.among) - 1
		return errors.New("expected " + strings.Join(c.among[:last], ", ") + " or " + c.among[last])
	}
	c.value = lower
	return nil
}

// choiceFlag gives a command a flag with a few values, the first of which is the
// default.
func choiceFlag(cmd *cobra.Command, name, shorthand, usage string, among ...string) *choice {
	c := &choice{value: among[0], among: among}
	cmd.Flags().VarP(c, name, shorthand, usage)
	err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(among, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic("crypto-broker: " + err.Error()) // the flag is not there, or twice
	}
	return c
}

func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
