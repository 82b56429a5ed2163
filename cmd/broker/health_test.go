// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

func TestHealthAsksASocketWhosePathIsNoURL(t *testing.T) {
	parent, err := os.MkdirTemp("", "broker") // the path of the test's own would be too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(parent) })
	for _, name := range []string{"100%", "a%20b", "what?", "no#1", "a b"} {
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		socket := filepath.Join(dir, "s")
		var config net.ListenConfig
		listener, err := config.Listen(t.Context(), "unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		healthpb.RegisterHealthServer(server, health.NewServer())
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(listener) }()
		var stdout bytes.Buffer
		// The whole program would replace gRPC's log under the server.
		if err := healthCommand(t.Context(), []string{"--socket", socket, "--timeout", "30s"}, os.LookupEnv, &stdout); err != nil || stdout.String() != "SERVING\n" {
			t.Errorf("%s: got %v and %q", socket, err, &stdout)
		}
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
