// SPDX-License-Identifier: Apache-2.0

package subcommands_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"testing"
	"time"

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

func TestASignalEndsACommandThatReadsStandardInput(t *testing.T) {
	stdin, writer, err := os.Pipe() // nobody writes to it
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	ctx, signal := context.WithCancel(t.Context())
	root := &cobra.Command{Use: "test", RunE: func(cmd *cobra.Command, _ []string) error {
		signal()
		_, err := io.ReadAll(cmd.InOrStdin())
		return err
	}}
	root.SilenceUsage, root.SilenceErrors = true, true
	var stderr bytes.Buffer
	exit := make(chan int, 1)
	go func() {
		exit <- subcommands.Run(ctx, root, []string{}, stdin, io.Discard, &stderr, func(err error) (int, string) { return 1, err.Error() })
	}()
	select {
	case got := <-exit:
		if got != 1 || stderr.String() != "test: interrupted\n" {
			t.Errorf("got the exit code %d and %q", got, stderr.String())
		}
	case <-time.After(time.Minute):
		t.Error("the command still reads")
	}
}

func TestStandardInputArrivesWhole(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789"), 10_000)
	var got []byte
	root := &cobra.Command{Use: "test", RunE: func(cmd *cobra.Command, _ []string) (err error) {
		got, err = io.ReadAll(cmd.InOrStdin())
		return err
	}}
	if exit := subcommands.Run(t.Context(), root, []string{}, bytes.NewReader(want), io.Discard, io.Discard, nil); exit != 0 || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes and the exit code %d, want %d bytes", len(got), exit, len(want))
	}
}
