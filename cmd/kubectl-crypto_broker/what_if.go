// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/subcommands"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/manifest"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/text"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/uses"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/whatif"
)

// Exit codes of what-if and inventory, in addition to the exit codes of package program.
const (
	exitBreaks   = 3 // calls would break
	exitNotKnown = 4
)

// codeError is the result of a command that worked, and whose exit code tells what it has found.
type codeError int

// Error implements error.
func (e codeError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func newWhatIf(cluster *cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "what-if -f FILE...",
		Short: "Show which workloads used what profiles would no longer offer, before they are applied",
		Long: `Shows which workloads used what the profiles in the files would no longer offer: operations, algorithms, keys, formats and
callers, with the number of calls. It changes nothing. It asks the brokers of each namespace in which the profiles would
change what is served, and compares what they have counted with the profiles, by the code of operator and broker.

  EFFECT  refused   brokers would refuse such calls
          changed   brokers would serve them with another algorithm, so what was made before does not match
  SINCE   when the first of the brokers began to count
  LAST    when the last of the calls ended

A broker counts from its start, and does not know the calls of a pod that is gone. A broker is asked through the API
server's proxy, which needs the right to get pods/proxy.

Exit codes:
  0  all brokers have answered, and no call that they have counted would break
  1  the question could not be asked; for example, a profile is invalid
  2  the command line is wrong
  3  calls would break
  4  no call that is known would break, but some brokers or uses are not known`,
		Example: `  ` + name + ` what-if -f payments.yaml -n shop
  kustomize build overlays/production | ` + name + ` what-if -f - -o json`,
		Args:              subcommands.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cluster.flags(cmd, false)
	files := manifest.FilesFlag(cmd)
	output := outputFlag(cmd, "table", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := output.check(); err != nil {
			return err
		}
		documents, err := manifest.ReadObjects(*files, cmd.InOrStdin())
		if err != nil {
			return err
		}
		client, namespace, err := cluster.connect()
		if err != nil {
			return err
		}
		profiles, err := whatif.ReadProfiles(cmd.Context(), documents, namespace)
		if err != nil {
			return err
		}
		asker := whatif.Asker{Client: client, Progress: cmd.ErrOrStderr()}
		report, err := asker.Ask(cmd.Context(), profiles)
		if err != nil {
			return err
		}
		if done, err := output.forPrograms(cmd.OutOrStdout(), report); err != nil {
			return err
		} else if !done {
			if err := writeReport(cmd.OutOrStdout(), report); err != nil {
				return err
			}
		}
		switch {
		case len(report.Findings) > 0:
			return codeError(exitBreaks)
		case len(report.Unknown) > 0:
			return codeError(exitNotKnown)
		}
		return nil
	}
	return cmd
}

// writeReport prints a report for people.
func writeReport(w io.Writer, report *whatif.Report) error {
	for _, note := range report.Notes {
		fmt.Fprintln(w, noteMark+note)
	}
	if report.Namespaces == 0 {
		fmt.Fprintln(w, "Nothing that brokers serve would change.")
		return nil
	}
	where := text.Count(report.Namespaces, "namespace")
	fmt.Fprintf(w, "What is served would change in %s. %d of %s there answered", where, report.Answered, text.Count(report.Brokers, "broker"))
	if report.Oldest != nil {
		fmt.Fprintf(w, "; the first began to count at %s, the last at %s", stamp(*report.Oldest), stamp(*report.Youngest))
	}
	fmt.Fprint(w, ".\n\n")
	if len(report.Findings) == 0 {
		fmt.Fprintln(w, "No call that they have counted would break.")
	} else if err := writeFindings(w, report.Findings); err != nil {
		return err
	}
	writeUnknown(w, report.Unknown)
	return nil
}

func writeFindings(w io.Writer, findings []whatif.Finding) error {
	var lines [][]string
	for _, f := range findings {
		used := strings.Join(append([]string{f.Operation + " " + f.Algorithm}, f.Keys...), ", ")
		lines = append(lines, []string{
			f.Namespace, f.Workload, fmt.Sprint(f.Pods), f.Container, f.Profile, used,
			fmt.Sprint(f.Calls), stamp(f.Since), stamp(f.Last), string(f.Effect), f.Why,
		})
	}
	return writeTable(w, []string{"NAMESPACE", "WORKLOAD", "PODS", "CONTAINER", "PROFILE", "USED", "CALLS", "SINCE", "LAST", "EFFECT", "WHY"}, lines)
}

// podsNamed is the number of pods that a line names about what is not known.
const podsNamed = 3

// writeUnknown prints what is not known, a line for each reason.
func writeUnknown(w io.Writer, unknown []uses.Unknown) {
	if len(unknown) == 0 {
		return
	}
	var reasons []string
	pods := map[string][]string{}
	for _, u := range unknown {
		if pods[u.Why] == nil {
			reasons = append(reasons, u.Why)
		}
		pods[u.Why] = append(pods[u.Why], u.Namespace+"/"+u.Pod)
	}
	fmt.Fprintln(w, "\nNot known:")
	for _, why := range reasons {
		named := strings.Join(pods[why][:min(podsNamed, len(pods[why]))], ", ")
		if more := len(pods[why]) - podsNamed; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		fmt.Fprintf(w, "  %s: %s (%s)\n", text.Count(len(pods[why]), "pod"), why, named)
	}
}

// stamp returns a time for people, in UTC to the minute.
func stamp(at time.Time) string { return at.UTC().Format("2006-01-02 15:04Z") }
