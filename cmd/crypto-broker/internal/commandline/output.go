// SPDX-License-Identifier: Apache-2.0

package commandline

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
	FormatText = "text"
	FormatJSON = "json"
	FormatCSV  = "csv"
	// FormatLog is the output of released command lines: log lines.
	FormatLog = "log"
)

// Choice is a flag with a few values. Their case does not matter.
type Choice struct {
	// Value is the chosen value in lower case.
	Value string
	among []string
}

// String implements pflag.Value.
func (c *Choice) String() string { return c.Value }

// Type implements pflag.Value.
func (c *Choice) Type() string { return "string" }

// Set implements pflag.Value.
func (c *Choice) Set(text string) error {
	lower := strings.ToLower(text)
	if !slices.Contains(c.among, lower) {
		last := len(c.among) - 1
		return errors.New("expected " + strings.Join(c.among[:last], ", ") + " or " + c.among[last])
	}
	c.Value = lower
	return nil
}

// ChoiceFlag gives a command a flag with a few values, the first of which is the
// default.
func ChoiceFlag(cmd *cobra.Command, name, shorthand, usage string, among ...string) *Choice {
	c := &Choice{Value: among[0], among: among}
	cmd.Flags().VarP(c, name, shorthand, usage)
	err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(among, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic("crypto-broker: " + err.Error()) // the flag is not there, or twice
	}
	return c
}

// WriteJSON writes a value as indented JSON.
func WriteJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
