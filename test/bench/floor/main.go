// SPDX-License-Identifier: Apache-2.0

// Command floor is the server with which the broker is compared. As "grpc" it is a bare
// gRPC server: the broker's operations behind the generated stubs alone, with the options
// that make the broker's own gRPC server fast. As "framed" and as "multiplexed" it serves
// the same operations without gRPC, and as "stream" over one stream of gRPC, see package
// framed. For each line of standard input it writes a line with its counts to standard
// output. It ends when standard input ends.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/metrics"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/tuning"
	"github.com/crypto-broker/crypto-broker-operator/test/bench/framed"
	"github.com/crypto-broker/crypto-broker-operator/test/bench/operations"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 3 {
		return errors.New("expected two arguments: grpc, framed, multiplexed or stream, and the path of the socket")
	}
	service, err := operations.New()
	if err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "unix", os.Args[2])
	if err != nil {
		return err
	}
	tuning.EaseCollector(0)
	var serve func() error
	stop := func() { _ = listener.Close() } // closing the listener ends serve
	switch os.Args[1] {
	case "grpc":
		bare := grpc.NewServer(tuning.ServerOptions()...)
		v1.RegisterCryptoServiceServer(bare, service)
		healthpb.RegisterHealthServer(bare, health.NewServer())
		serve, stop = func() error { return bare.Serve(listener) }, bare.Stop
	case "framed":
		serve = func() error { return framed.Serve(listener, service) }
	case "multiplexed":
		serve = func() error { return framed.ServeMultiplexed(listener, service) }
	case "stream":
		server := framed.NewStreamServer(service, tuning.ServerOptions()...)
		serve, stop = func() error { return server.Serve(listener) }, server.Stop
	default:
		return fmt.Errorf("found %q, expected grpc, framed, multiplexed or stream", os.Args[1])
	}
	go func() {
		defer stop()
		input := bufio.NewScanner(os.Stdin)
		for input.Scan() {
			tell()
		}
	}()
	tell()
	return serve()
}

// tell writes the number of allocated objects and of goroutines.
func tell() {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/tiny/allocs:objects"}}
	metrics.Read(samples)
	fmt.Println(samples[0].Value.Uint64()+samples[1].Value.Uint64(), runtime.NumGoroutine())
}
