// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/subcommands"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/dashboard"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/fleet"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/rollouts"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

func newDashboard(cluster *cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Serve a page on this machine that shows the present state of the fleet",
		Long: `Serves a page about the fleet on the loopback interface, and prints its address. The page shows profiles and who
serves them, how far changes have come, rollouts, brokers that need attention with the command that mends them, and
which cryptography is in use. It changes while the cluster does.

The command reads the cluster with your rights, and so does what you do in the page. The address has a secret: whoever
has it acts as you until the command ends. The command ends by Ctrl-C, or when the shell that started it ends.

The page shows all namespaces if you may list and watch pods and CryptoProfiles in all, else the namespace of the
context. --namespace and --namespaces name others.`,
		Example: `  ` + name + ` dashboard
  ` + name + ` dashboard --namespaces shop,bank --port 8080`,
		Args:              subcommands.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cluster.flags(cmd, false)
	port := cmd.Flags().Uint16("port", 0, "`port` on 127.0.0.1 (default: a free one)")
	namespaces := cmd.Flags().StringSlice("namespaces", nil, "`names` of the namespaces to show, with commas between them")
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("namespaces", cluster.complete(namespaceNames)))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		named := slices.Clone(*namespaces)
		if given := cluster.overrides.Context.Namespace; given != "" {
			named = append(named, given)
		}
		slices.Sort(named)
		named = slices.Compact(named)
		for _, namespace := range named {
			if wrong := validation.IsDNS1123Label(namespace); len(wrong) > 0 {
				return program.Usagef("found the namespace %q, expected the name of one: %s", namespace, wrong[0])
			}
		}
		if err := cluster.pin(cmd.Flags()); err != nil {
			return err
		}
		settings, namespace, err := cluster.settings(rest.NoWarnings{})
		if err != nil {
			return err
		}
		client, err := kubernetes.NewForConfig(settings)
		if err != nil {
			return fmt.Errorf("prepare to ask the cluster at %s: %w", settings.Host, err)
		}
		scope := fleet.Scope{Namespaces: named}
		if len(named) == 0 {
			if scope, err = fleet.AllOr(cmd.Context(), client, namespace); err != nil {
				return err
			}
		}
		server, err := dashboard.Listen(*port, func(ctx context.Context, source downgrade.Source, action rollouts.Action, seen rollouts.Seen) (string, error) {
			return rollouts.Ask(ctx, client, source, action, &seen)
		})
		if err != nil {
			return fmt.Errorf("the page can't be served: %w", err)
		}
		follower := &fleet.Follower{Config: settings, Client: client, Scope: scope, Context: cluster.overrides.CurrentContext, Flags: connectionFlags(cmd.Flags())}
		fmt.Fprintf(cmd.OutOrStdout(), "The page shows %s, until Ctrl-C:\n%s\n", follower.Shows(), server.URL())
		ctx, stop := context.WithCancel(cmd.Context())
		defer stop()
		klog.SetLogger(logr.Discard()) // the page says what can't be read; client-go would repeat it in the terminal
		go endWithParent(ctx, stop, os.Getppid)
		return serve(ctx, server, follower)
	}
	return cmd
}

// serve serves the page until the context ends, or until the server or the follower fails.
func serve(ctx context.Context, server *dashboard.Server, follower *fleet.Follower) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Run(ctx) })
	group.Go(func() error { return follower.Run(ctx, server.Publish) })
	return group.Wait()
}

// parentInterval is the time between two checks whether the parent process still exists.
const parentInterval = time.Second

// endWithParent calls end when the parent of the process has ended. The process then has another
// parent. It is needed because a closing terminal does not end every process of its shell.
func endWithParent(ctx context.Context, end func(), parent func() int) {
	first := parent()
	ticks := time.NewTicker(parentInterval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			if parent() != first {
				end()
				return
			}
		}
	}
}

// forCommands are the flags that choose a cluster. Commands on the page repeat them, so that they
// do not change another cluster. Flags with credentials are not among them.
var forCommands = []string{"kubeconfig", "context", "cluster", "user", "server", "as", "as-group", "as-uid", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority"}

// connectionFlags returns the flags for commands on the page, each after a space.
func connectionFlags(flags *pflag.FlagSet) string {
	var text strings.Builder
	flags.Visit(func(f *pflag.Flag) {
		if !slices.Contains(forCommands, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, is := f.Value.(pflag.SliceValue); is {
			values = list.GetSlice()
		}
		for _, value := range values {
			text.WriteString(" --" + f.Name + "=" + shellWord(value))
		}
	})
	return text.String()
}

// shellWord returns a value as one word for a POSIX shell.
func shellWord(value string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+,", r)
	}
	if value != "" && !strings.ContainsFunc(value, func(r rune) bool { return !plain(r) }) {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
