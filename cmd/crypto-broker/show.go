// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	policyv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/policy/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

func newShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [FILE|DIR|-]",
		Short: "Show the security strength and the FIPS 140-3 verdict of profiles",
		Long: `Shows what profiles offer, the security strength of each operation (NIST SP
800-57 Part 1 Rev. 5, in bits, with what limits it), and whether FIPS 140-3
approves it.

Without an argument a broker is asked for the profiles that this user may use,
else the profiles of a file are judged. A directory stands for its
Profiles.yaml, and - for standard input.`,
		Example: `  crypto-broker profiles show Profiles.yaml
  crypto-broker profiles show --socket /run/broker/crypto-broker-server.sock --output json`,
		Args: arguments(0, 1, "one file, directory or -, or none to ask a broker"),
	}
	output, requireFIPS := outputFlag(cmd), fipsFlag(cmd)
	socket := cmd.Flags().String("socket", filepath.Join(server.DefaultSocketDir, server.SocketName), "path of the broker's socket")
	timeout := cmd.Flags().Duration("timeout", 10*time.Second, "how long to wait for the broker")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			if cmd.Flags().Changed("require-fips") {
				return usagef("--require-fips is about files, and a broker tells by itself what it requires; name a file or leave it out")
			}
			if *timeout <= 0 {
				return usagef("--timeout is %s, expected more than 0", *timeout)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), *timeout)
			defer cancel()
			shown, err := ask(ctx, *socket)
			if err != nil {
				return err
			}
			return shown.write(cmd.OutOrStdout(), *output)
		}
		for _, flag := range []string{"socket", "timeout"} {
			if cmd.Flags().Changed(flag) {
				return usagef("--%s is for asking a broker, but a file is named; give one of them", flag)
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
			if err := shownSet(set).write(cmd.OutOrStdout(), *output); err != nil {
				return err
			}
		}
		if len(problems) > 0 {
			return errFound
		}
		return nil
	}
	return cmd
}

// maxPages bounds how often a broker is asked for more. A set has fewer profiles
// than they hold.
const maxPages = 1000

// ask asks a broker for the profiles that the user may use.
func ask(ctx context.Context, socket string) (*shown, error) {
	absolute, err := filepath.Abs(socket)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("unix://"+absolute, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("the socket %s cannot be used: %w", socket, err)
	}
	defer func() { _ = conn.Close() }() // the answers are all that matters
	client := policyv1.NewPolicyServiceClient(conn)
	var all *shown
	request := &policyv1.ListProfilesRequest{}
	for range maxPages {
		reply, err := client.ListProfiles(ctx, request)
		switch {
		case status.Code(err) == codes.Unimplemented:
			return nil, fmt.Errorf("the broker at %s is of a release that tells nothing about its profiles", socket)
		case err != nil:
			return nil, fmt.Errorf("the broker at %s does not answer: %s", socket, status.Convert(err).Message())
		}
		page := shownPage(reply)
		switch {
		case all == nil:
			all = page
		case all.Digest != page.Digest:
			return nil, fmt.Errorf("the broker at %s got other profiles in between, try again", socket)
		default:
			all.Profiles = append(all.Profiles, page.Profiles...)
		}
		if request.PageToken = reply.GetNextPageToken(); request.PageToken == "" {
			return all, nil
		}
	}
	return nil, fmt.Errorf("the broker at %s lists profiles without an end", socket)
}
