// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

type healthConfig struct {
	socket    string
	socketDir string
	callers   []string
	timeout   time.Duration
}

func (c *healthConfig) settings() []setting {
	return []setting{
		{
			name: "socket", kind: "path", set: absolutePath(&c.socket),
			usage: "path of the socket to ask (default all sockets of a broker with these settings)",
		},
		{
			name: contract.SocketDirFlag, env: "CRYPTO_BROKER_SOCKET_DIR", kind: "path", initial: contract.SocketDir, set: absolutePath(&c.socketDir),
			usage: "directory of the socket",
		},
		{
			name: contract.CallersFlag, env: "CRYPTO_BROKER_CALLERS", kind: "names", set: names(&c.callers),
			usage: "names of the callers; each has its own socket",
		},
		{
			name: "timeout", kind: "duration", initial: "1s", set: positiveDuration(&c.timeout),
			usage: "how long to wait for the answers",
		},
	}
}

func healthUsage() string {
	return `Asks a broker on this machine whether it serves. The exit code is 0 if it does, and
1 if it does not. This is for probes that run a command.

Usage:
  broker health [flags]

Flags:
` + flagUsages((&healthConfig{}).settings())
}

func healthCommand(ctx context.Context, args []string, lookup func(string) (string, bool), stdout io.Writer) error {
	var c healthConfig
	settings := c.settings()
	flags, err := newFlags("broker health", settings)
	if err != nil {
		return err
	}
	if err := parse(flags, settings, args, lookup); err != nil {
		return printHelp(err, stdout, healthUsage)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	for _, socket := range c.sockets() {
		if err := askHealth(ctx, socket); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(stdout, healthpb.HealthCheckResponse_SERVING)
	return err
}

func (c *healthConfig) sockets() []string {
	if c.socket != "" {
		return []string{c.socket}
	}
	if len(c.callers) == 0 {
		return []string{filepath.Join(c.socketDir, contract.SocketFile)}
	}
	paths := make([]string, len(c.callers))
	for i, caller := range c.callers {
		paths[i] = filepath.Join(c.socketDir, caller, contract.SocketFile)
	}
	return paths
}

func askHealth(ctx context.Context, socket string) error {
	// gRPC reads a target as a URL, in which "%", "?" and "#" of a path have a meaning.
	conn, err := grpc.NewClient("passthrough:///broker",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "unix", socket)
		}))
	if err != nil {
		return fmt.Errorf("ask the broker at %s: %w", socket, err)
	}
	defer func() { _ = conn.Close() }() // only the answer matters
	reply, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		return fmt.Errorf("the broker at %s does not answer: %s", socket, status.Convert(err).Message())
	}
	if reply.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		return fmt.Errorf("the broker at %s is %s", socket, reply.GetStatus())
	}
	return nil
}
