// SPDX-License-Identifier: Apache-2.0

// Package tuning has what makes a server of gRPC fast for the broker. It changes
// nothing that a client can tell, so that another server can have it, too: the one
// that benchmarks compare the broker with.
package tuning

import "google.golang.org/grpc"

// Sizes in bytes.
const (
	// StreamWindow is what clients may send, of each request, before it is read. It
	// is the least that gRPC allows.
	StreamWindow = 64 << 10
	// connectionWindow is what a client may send before it waits for the broker to
	// take it from the socket. Fixed windows spare the pings by which gRPC estimates
	// better ones.
	connectionWindow = 1 << 20
)

// workers is how many goroutines serve requests and stay. They keep their grown
// stacks, while one that is made for a request has to grow its own each time.
const workers = 32

// ServerOptions returns the options.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.StaticStreamWindowSize(StreamWindow),
		grpc.StaticConnWindowSize(connectionWindow),
		grpc.NumStreamWorkers(workers),
	}
}
