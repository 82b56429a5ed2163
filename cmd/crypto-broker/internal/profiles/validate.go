// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
)

func newValidate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate FILE|DIR|-...",
		Short: "Check profile files with the compiler of the broker",
		Long: `Checks profile files with the compiler of the broker: a broker of this version
serves what is valid here. A directory stands for its ` + profile.FileName + `, and - for
standard input. All problems are listed at once, each on a line with file, line,
column and field. Lines with "warning:" are about what is served and can never
succeed, or does something else than with brokers before; a file with warnings
is valid.`,
		Example: `  crypto-broker profiles validate Profiles.yaml
  kubectl get configmap crypto-broker-profiles -o jsonpath='{.data.Profiles\.yaml}' | crypto-broker profiles validate -`,
		Args: commandline.Arguments(1, -1, "at least one file, directory or -"),
	}
	output, requireFIPS := commandline.ChoiceFlag(cmd, "output", "o", "text or json", commandline.FormatText, commandline.FormatJSON), fipsFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var verdicts []verdict
		valid := true
		for _, argument := range args {
			s, err := read(argument, cmd.InOrStdin())
			if err != nil {
				return err
			}
			v := judge(s, *requireFIPS)
			valid = valid && v.Valid
			verdicts = append(verdicts, v)
		}
		if err := writeVerdicts(cmd.OutOrStdout(), output.Value, verdicts); err != nil {
			return err
		}
		if !valid {
			return commandline.ErrFound
		}
		return nil
	}
	return cmd
}

// verdict is the result for a file.
type verdict struct {
	File  string `json:"file"`
	Valid bool   `json:"valid"`
	// Digest is the digest of the set, as brokers report it.
	Digest string `json:"digest"`
	// Served is the number of profiles of the file that a broker would serve.
	Served   int       `json:"served"`
	Problems []problem `json:"problems"`
	// Warnings are about valid profiles whose calls can never succeed, or that work
	// differently than with earlier brokers.
	Warnings []problem `json:"warnings"`
}

// problem is one thing that is wrong with a file.
type problem struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Profile string `json:"profile,omitempty"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`

	text string // the whole line
}

func judge(s source, requireFIPS bool) verdict {
	set, problems := s.compile(requireFIPS)
	v := verdict{File: s.name, Valid: len(problems) == 0, Digest: profile.Digest(s.data), Problems: rendered(problems, "")}
	var warnings profile.Problems
	if set != nil {
		v.Served, warnings = set.Len(), set.Warnings()
	}
	v.Warnings = rendered(warnings, "warning: ")
	return v
}

// rendered renders problems. kind follows the position, as in messages of compilers.
func rendered(problems profile.Problems, kind string) []problem {
	all := []problem{}
	for _, p := range problems {
		all = append(all, problem{p.Line, p.Column, p.Profile, p.Field, p.Message, ""})
		position := fmt.Sprintf("%s:%d:%d: ", p.File, p.Line, p.Column)
		all[len(all)-1].text = position + kind + strings.TrimPrefix(p.String(), position)
	}
	return all
}

func writeVerdicts(w io.Writer, output string, verdicts []verdict) error {
	if output == commandline.FormatJSON {
		return commandline.WriteJSON(w, struct {
			Files []verdict `json:"files"`
		}{verdicts})
	}
	for _, v := range verdicts {
		for _, p := range v.Problems {
			if _, err := fmt.Fprintln(w, p.text); err != nil {
				return err
			}
		}
		for _, p := range v.Warnings {
			if _, err := fmt.Fprintln(w, p.text); err != nil {
				return err
			}
		}
		said := "valid"
		if !v.Valid {
			said = count(len(v.Problems), "problem")
		}
		if len(v.Warnings) > 0 {
			said += ", " + count(len(v.Warnings), "warning")
		}
		if _, err := fmt.Fprintf(w, "%s: %s, %s served\n", v.File, said, count(v.Served, "profile")); err != nil {
			return err
		}
	}
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
