// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
	"github.com/spf13/cobra"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

func newHealth() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a broker whether it serves",
		Long: `Asks a broker whether it serves. The exit code is 4 if it does not, or if none
answers.`,
		Example: `  crypto-broker health --timeout 1s --output text`,
		Args:    commandline.Arguments(0, 0, "none"),
	}
	c := newCaller(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		return c.run("Checking broker server health", nil, func(ctx context.Context) (*result, error) {
			reply, err := healthv1.NewHealthClient(c.Conn).Check(ctx, &healthv1.HealthCheckRequest{})
			if err != nil {
				return nil, err
			}
			type response struct{ Status string }
			status := reply.GetStatus().String()
			r := &result{
				message: "Health check response", took: "Health check",
				response: response{status}, text: []byte(status + "\n"),
			}
			if c.output.Value == commandline.FormatJSON {
				r.fields = []field{{"Status", status}}
			}
			if reply.GetStatus() != healthv1.HealthCheckResponse_SERVING {
				r.verdict = errNotServing
			}
			return r, nil
		})
	}
	return cmd
}
