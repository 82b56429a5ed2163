// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
)

func newBenchmark() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "benchmark",
		Short: "Let a broker measure its operations",
		Long: `Lets a broker measure its operations, without client and socket. Only a broker
that was started with --development-service does this.`,
		Args: commandline.Arguments(0, 0, "none"),
	}
	c := newCaller(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		return c.run("Running server-side benchmarks", nil, func(ctx context.Context) (*result, error) {
			reply, err := v1.NewCryptoDevServiceClient(c.Conn).Benchmark(ctx, &v1.BenchmarkRequest{})
			if err != nil {
				return nil, switchedOff(err)
			}
			return c.measured(reply.GetBenchmarkResults())
		})
	}
	return cmd
}

// measured returns the result of a measurement.
func (c *caller) measured(results string) (*result, error) {
	var measured struct {
		Results []struct {
			Name string `json:"name"`
			Time int64  `json:"avgTime"` // nanoseconds
		} `json:"results"`
	}
	if err := json.Unmarshal([]byte(results), &measured); err != nil {
		return nil, fmt.Errorf("the broker at %s sent measurements that cannot be read: %w", c.Socket, err)
	}
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, r := range measured.Results {
		fmt.Fprintf(table, "%s\t%s\n", r.Name, time.Duration(r.Time))
	}
	_ = table.Flush() // a bytes.Buffer takes everything
	r := &result{
		message: "Benchmark results", took: "Server-side Benchmarking", text: text.Bytes(),
		fields: []field{{"benchmarkResults", results}},
	}
	if c.output.Value == commandline.FormatJSON {
		r.fields = []field{{"benchmarkResults", json.RawMessage(results)}}
	}
	return r, nil
}

func newFakeEndpoint() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fake-endpoint",
		Short: "Make a call that does nothing",
		Long: `Makes a call that does nothing, to measure what a call itself costs. Only a
broker that was started with --development-service answers it.`,
		Args: commandline.Arguments(0, 0, "none"),
	}
	c := newCaller(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		return c.run("Calling fake endpoint", nil, func(ctx context.Context) (*result, error) {
			reply, err := v1.NewCryptoDevServiceClient(c.Conn).FakeEndpoint(ctx, &v1.FakeEndpointRequest{})
			if err != nil {
				return nil, switchedOff(err)
			}
			type response struct {
				Message string `json:"message"`
			}
			r := &result{
				message: "Fake endpoint response", took: "Fake endpoint call",
				response: response{reply.GetMessage()}, text: []byte(reply.GetMessage() + "\n"),
			}
			if c.output.Value == commandline.FormatJSON {
				r.fields = []field{{"message", reply.GetMessage()}}
			}
			return r, nil
		})
	}
	return cmd
}

// switchedOff returns an error that says how to start the broker with this service.
func switchedOff(err error) error {
	if status.Code(err) != codes.Unimplemented {
		return err
	}
	return status.Error(codes.FailedPrecondition, "the broker does not offer this, because it was started without --development-service (CRYPTO_BROKER_DEVELOPMENT_SERVICE)")
}
