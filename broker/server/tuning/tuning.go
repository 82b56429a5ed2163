// SPDX-License-Identifier: Apache-2.0

// Package tuning has the settings that make a gRPC server fast for the broker's calls.
// They change nothing that a client can observe. The server that benchmarks compare the
// broker with has the same settings.
package tuning

import "google.golang.org/grpc"

// Sizes in bytes.
const (
	// streamWindow is the maximum number of bytes of each request that a client may send before
	// the broker reads it. It is the smallest window that gRPC allows.
	streamWindow = 64 << 10
	// connectionWindow is the maximum number of bytes that a client may send on a connection
	// before it waits for the broker to read them. With fixed windows, gRPC sends no pings to
	// estimate the best size.
	connectionWindow = 1 << 20
)

// workers is the number of goroutines that serve requests, one after the other. They keep their
// grown stacks. A new goroutine for each request would have to grow its stack each time.
const workers = 32

// ServerOptions returns the options for [grpc.NewServer].
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connectionWindow),
		grpc.NumStreamWorkers(workers),
	}
}
