// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/connection"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/sessionbench"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/subcommands"
)

func newSession() *cobra.Command {
	cmd := &cobra.Command{Use: "session", Short: "Measure encrypted sessions"}
	cmd.AddCommand(newSessionBench())
	subcommands.Only(cmd)
	return cmd
}

// sessionBench is the command line of session bench.
type sessionBench struct {
	broker  *connection.Broker
	profile *string
	output  *commandline.Choice
	url     string
	config  sessionbench.Config
}

func newSessionBench() *cobra.Command {
	s := &sessionBench{}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how long each step of encrypted sessions takes",
		Long: `Measures encrypted sessions as their clients see them, and prints how long each
step takes:

  init     generate a key pair, ask for a session, derive the key
  request  seal a request, send it, open the reply, in one session for each
           connection
  both     a new session and one request in it

Without --url, it calls the broker's socket as an application does that ends HTTP
itself: InitSession, OpenRequest and SealReply. The profile needs a section Session,
and each session is closed afterwards. With --url, it is a client of a server that
speaks the protocol by HTTP. Sessions there end only by time, so make sure that the
server has room for them.

Each connection works for --duration, or makes --requests operations one after the
other. A broker remembers each request for up to two clock windows: many requests
need a profile with a small ClockWindow.

The exit code is 1 if operations failed. The times are of those that succeeded.`,
		Example: `  crypto-broker session bench --profile Shop --connections 10 --requests 5000
  crypto-broker session bench --url http://127.0.0.1:8080 --version 2 --measure request --duration 10s --output csv`,
		Args: commandline.Arguments(0, 0, "none"),
	}
	flags := cmd.Flags()
	flags.StringVar(&s.url, "url", "", "`address` of a server that speaks the protocol by HTTP, such as http://127.0.0.1:8080, in place of the socket")
	flags.IntVar(&s.config.Version, "version", 1, "version of the protocol, `1 or 2`")
	flags.IntVar(&s.config.Connections, "connections", 1, fmt.Sprintf("`number` of connections at the same time, 1 to %d", sessionbench.MaxConnections))
	flags.IntVar(&s.config.Requests, "requests", 1000, fmt.Sprintf("`number` of operations of each connection, 1 to %d", sessionbench.MaxRequests))
	flags.DurationVar(&s.config.Duration, "duration", 0, "how long each measurement takes, up to 10m, in place of --requests")
	flags.IntVar(&s.config.Size, "size", 256, fmt.Sprintf("`bytes` of a request before encryption, 16 to %d", sessionbench.MaxSize))
	flags.StringVar(&s.config.Path, "path", "/transaction/purchase", "`path` of encrypted requests")
	flags.StringSliceVar(&s.config.Measure, "measure", []string{"init", "request"}, "`names` of what to measure: init, request, both")
	s.output = commandline.ChoiceFlag(cmd, "output", "o", "form of the result: text, csv or json", commandline.FormatText, commandline.FormatCSV, commandline.FormatJSON)
	s.profile, s.broker = profileFlag(cmd), connection.Flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return s.run(cmd) }
	return cmd
}

func (s *sessionBench) run(cmd *cobra.Command) error {
	if err := s.check(cmd); err != nil {
		return err
	}
	s.config.Progress = func(what string) { fmt.Fprintln(cmd.ErrOrStderr(), what) }
	rows, err := sessionbench.Measure(cmd.Context(), s.config)
	if err != nil {
		return err
	}
	write := map[string]func([]sessionbench.Row) error{
		commandline.FormatText: func(rows []sessionbench.Row) error { return sessionbench.WriteTable(cmd.OutOrStdout(), rows) },
		commandline.FormatCSV:  func(rows []sessionbench.Row) error { return sessionbench.WriteCSV(cmd.OutOrStdout(), rows) },
		commandline.FormatJSON: func(rows []sessionbench.Row) error { return sessionbench.WriteJSON(cmd.OutOrStdout(), rows) },
	}[s.output.Value]
	if err := write(rows); err != nil {
		return err
	}
	if slices.ContainsFunc(rows, func(r sessionbench.Row) bool { return r.Failed > 0 }) {
		return commandline.ErrFound
	}
	return nil
}

// check checks the command line and sets the target.
func (s *sessionBench) check(cmd *cobra.Command) error {
	c, changed := &s.config, cmd.Flags().Changed
	switch {
	case c.Version != 1 && c.Version != 2:
		return program.Usagef("found --version %d, expected 1 or 2", c.Version)
	case c.Connections < 1 || c.Connections > sessionbench.MaxConnections:
		return program.Usagef("found --connections %d, expected 1 to %d", c.Connections, sessionbench.MaxConnections)
	case c.Requests < 1 || c.Requests > sessionbench.MaxRequests:
		return program.Usagef("found --requests %d, expected 1 to %d", c.Requests, sessionbench.MaxRequests)
	case changed("duration") && (c.Duration < time.Millisecond || c.Duration > sessionbench.MaxDuration):
		return program.Usagef("found --duration %s, expected 1ms to %s", c.Duration, sessionbench.MaxDuration)
	case changed("duration") && changed("requests"):
		return program.Usagef("found --requests and --duration, expected one of them")
	case c.Size < 16 || c.Size > sessionbench.MaxSize:
		return program.Usagef("found --size %d, expected 16 to %d", c.Size, sessionbench.MaxSize)
	case !strings.HasPrefix(c.Path, "/") || strings.ContainsAny(c.Path, "?#| "):
		return program.Usagef("found --path %q, expected a path without a query, such as /orders", c.Path)
	case len(c.Measure) == 0:
		return program.Usagef("found an empty --measure, expected some of %s", strings.Join(sessionbench.Measurements, ", "))
	case s.url != "" && (changed("socket") || changed("profile")):
		return program.Usagef("found --url and a flag for the socket, expected one of them")
	case s.broker.Timeout <= 0:
		return program.Usagef("--timeout is %s, expected more than 0", s.broker.Timeout)
	}
	for _, name := range c.Measure {
		if !slices.Contains(sessionbench.Measurements, name) {
			return program.Usagef("found --measure %q, expected %s", name, strings.Join(sessionbench.Measurements, ", "))
		}
	}
	return s.setTarget(cmd)
}

func (s *sessionBench) setTarget(cmd *cobra.Command) error {
	if s.url != "" {
		u, err := sessionbench.ParseURL(s.url)
		if err != nil {
			return program.Usagef("--url: %v", err)
		}
		s.config.Target = &sessionbench.HTTP{URL: u, Timeout: s.broker.Timeout}
		return nil
	}
	s.config.Target = &sessionbench.Socket{
		Profile: *s.profile, Timeout: s.broker.Timeout, Failed: s.failed,
		Dial: func() (*grpc.ClientConn, error) {
			s.broker.Retries = true // failed operations are counted
			err := s.broker.Open(cmd)
			return s.broker.Conn, err
		},
	}
	return nil
}

// failed returns the failure for an error of a call that is not repeated.
func (s *sessionBench) failed(err error) error {
	if st := status.Convert(err); st.Code() == codes.ResourceExhausted {
		return &connection.Failure{Exit: commandline.ExitUnavailable, Code: st.Code(), Message: fmt.Sprintf("the broker at %s has no room: %s", s.broker.Socket, st.Message())}
	}
	return s.broker.Failed(err)
}
