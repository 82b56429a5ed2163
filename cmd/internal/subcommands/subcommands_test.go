// SPDX-License-Identifier: Apache-2.0

package subcommands_test

import (
	"io"
	"testing"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/subcommands"
)

func TestWhateverIsWrongOnACommandLineIsAnErrorOfTheCommandLine(t *testing.T) {
	for sentence, test := range map[string]struct {
		args []string
		want string
	}{
		"an unknown command":          {[]string{"surf"}, `unknown command "surf"`},
		"an unknown flag":             {[]string{"list", "--surf"}, "unknown flag: --surf"},
		"a stray argument":            {[]string{"list", "x"}, `unexpected argument "x"`},
		"help for an unknown command": {[]string{"help", "surf"}, `unknown command "surf"`},
		"a completion for no shell":   {[]string{"completion", "surf"}, `unexpected argument "surf"`},
		"an argument of a completion": {[]string{"completion", "bash", "x"}, `unexpected argument "x"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			root := &cobra.Command{Use: "test"}
			root.AddCommand(&cobra.Command{Use: "list", Args: subcommands.NoArguments, RunE: func(*cobra.Command, []string) error { return nil }})
			subcommands.Configure(root)
			subcommands.Strict(root)
			root.SetArgs(test.args)
			root.SetOut(io.Discard)
			if err := root.Execute(); err == nil || err.Error() != test.want || !program.IsUsage(err) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}
