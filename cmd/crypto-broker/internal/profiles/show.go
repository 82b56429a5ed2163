// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	policyv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/policy/v1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/connection"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

func newShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [FILE|DIR|-]",
		Short: "Show the security strength and the FIPS 140-3 verdict of profiles",
		Long: `Shows the operations of profiles, the security strength of each (NIST SP 800-57
Part 1 Rev. 5, in bits, with what limits it), and whether FIPS 140-3 approves it.

Without an argument it asks a broker for the profiles that this user may use.
With an argument it reads a file; a directory stands for its Profiles.yaml, and -
for standard input.`,
		Example: `  crypto-broker profiles show Profiles.yaml
  crypto-broker profiles show --socket /run/broker/crypto-broker-server.sock --output json`,
		Args: commandline.Arguments(0, 1, "one file, directory or -, or none to ask a broker"),
	}
	output, requireFIPS := commandline.ChoiceFlag(cmd, "output", "o", "text or json", commandline.FormatText, commandline.FormatJSON), fipsFlag(cmd)
	b := connection.Flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			if cmd.Flags().Changed("require-fips") {
				return program.Usagef("--require-fips is only for files, because a broker says what it requires; name a file or leave the flag out")
			}
			if err := b.Open(cmd); err != nil {
				return err
			}
			defer b.Close()
			var answer *shown
			err := b.Call(cmd.Context(), func(ctx context.Context) (err error) {
				answer, err = ask(ctx, b)
				return err
			})
			if err != nil {
				return err
			}
			return answer.write(cmd.OutOrStdout(), output.Value)
		}
		for _, flag := range []string{"socket", "timeout"} {
			if cmd.Flags().Changed(flag) {
				return program.Usagef("--%s is only for asking a broker, but a file is named; give one of them", flag)
			}
		}
		s, err := read(args[0], cmd.InOrStdin())
		if err != nil {
			return err
		}
		set, problems := s.compile(*requireFIPS)
		for _, p := range problems {
			fmt.Fprintln(cmd.ErrOrStderr(), p)
		}
		if set != nil {
			if err := shownSet(set).write(cmd.OutOrStdout(), output.Value); err != nil {
				return err
			}
		}
		if len(problems) > 0 {
			return commandline.ErrFound
		}
		return nil
	}
	return cmd
}

// maxPages is the maximum number of pages that are requested. Every set fits into fewer pages.
const maxPages = 1000

// ask asks a broker for the profiles that the user may use.
func ask(ctx context.Context, b *connection.Broker) (*shown, error) {
	client := policyv1.NewPolicyServiceClient(b.Conn)
	var all *shown
	request := &policyv1.ListProfilesRequest{}
	for range maxPages {
		reply, err := client.ListProfiles(ctx, request)
		switch {
		case status.Code(err) == codes.Unimplemented:
			return nil, fmt.Errorf("the broker at %s is of a release that cannot list its profiles", b.Socket)
		case err != nil:
			return nil, err
		}
		page := shownPage(reply)
		switch {
		case all == nil:
			all = page
		case all.Digest != page.Digest:
			return nil, fmt.Errorf("the broker at %s changed its profiles in the meantime, try again", b.Socket)
		default:
			all.Profiles = append(all.Profiles, page.Profiles...)
		}
		if request.PageToken = reply.GetNextPageToken(); request.PageToken == "" {
			return all, nil
		}
	}
	return nil, fmt.Errorf("the broker at %s sends more pages of profiles than a set can have", b.Socket)
}
