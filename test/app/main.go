// SPDX-License-Identifier: Apache-2.0

// Command app is an application that hashes its data with Crypto Broker. It knows the socket, the name of a profile
// and the released wire protocol, and nothing of Kubernetes.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/app/stats"
)

const usage = `Usage: app [--calls N] [--profile NAME] [--interval DURATION] [--workers N] [--socket PATH] [--stats-address ADDRESS]

Hashes data through the Crypto Broker at a Unix socket until it is ended, or N times. Writes a line of JSON at its start,
at the first digest, whenever the algorithm of the answers changes, for each new error, and at its end; answers
GET /stats with its counts, GET /healthz, and requests for /echo with what they had. Exit status 1 when it has made all N calls and one of them failed.

Each option can be given as an environment variable, too: SOCKET, PROFILE, INTERVAL, WORKERS, CALLS, STATS_ADDRESS.

`

// healthInterval is between two health checks.
const healthInterval = time.Second

type options struct {
	socket, profile, statsAddress string
	interval                      time.Duration
	workers, calls                int64
}

func main() {
	o, err := parseOptions(os.Args[1:], os.Getenv)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		err = run(ctx, o, newRecorder(o.profile, os.Stdout))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "app:", err)
		os.Exit(1)
	}
}

func parseOptions(arguments []string, environment func(string) string) (options, error) {
	o := options{
		socket:   "/tmp/open-crypto-broker/crypto-broker-server.sock",
		profile:  "Default",
		interval: 100 * time.Millisecond, workers: 1, statsAddress: ":8080",
	}
	flags := flag.NewFlagSet("app", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.socket, "socket", o.socket, "where the broker listens")
	flags.StringVar(&o.profile, "profile", o.profile, "the profile to hash with")
	flags.DurationVar(&o.interval, "interval", o.interval, "pause of a worker between two calls")
	flags.Int64Var(&o.workers, "workers", o.workers, "how many calls are made at the same time")
	flags.Int64Var(&o.calls, "calls", 0, "end after this many calls; 0: never")
	flags.StringVar(&o.statsAddress, "stats-address", o.statsAddress, "where to answer by HTTP; \"off\" to not listen")
	for name, variable := range map[string]string{"socket": "SOCKET", "profile": "PROFILE", "interval": "INTERVAL",
		"workers": "WORKERS", "calls": "CALLS", "stats-address": "STATS_ADDRESS"} {
		if value := environment(variable); value != "" {
			if err := flags.Set(name, value); err != nil {
				return o, fmt.Errorf("the environment variable %s is %q: %w", variable, value, err)
			}
		}
	}
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("found the argument %q, expected options only; --help shows them", flags.Arg(0))
	}
	if o.workers < 1 || o.workers > 1000 {
		return o, fmt.Errorf("found %d workers, expected 1 to 1000", o.workers)
	}
	if o.calls < 0 || o.interval < 0 {
		return o, fmt.Errorf("found %d calls every %s, expected neither to be negative", o.calls, o.interval)
	}
	return o, nil
}

// run makes calls until the context ends or all calls are made. It returns an error if the application could not make calls.
func run(ctx context.Context, o options, record *recorder) error {
	record.started(map[string]any{"socket": o.socket, "profile": o.profile, "workers": o.workers,
		"interval": o.interval.String(), "calls": o.calls})
	if o.statsAddress != "off" {
		close, err := serveStats(o.statsAddress, record)
		if err != nil {
			return err
		}
		defer close()
	}
	broker, err := connect(ctx, o.socket, connectTimeout, record.retried)
	if err != nil {
		return err
	}
	work(ctx, o, broker, record)
	final := record.ended()
	if err := broker.close(); err != nil {
		return err
	}
	if o.calls > 0 && (final.Calls != o.calls || final.Failed > 0 || final.HealthFailed > 0) {
		return fmt.Errorf("%d of %d calls made, %d of them failed, and %d of %d health checks",
			final.Calls, o.calls, final.Failed, final.HealthFailed, final.HealthChecks)
	}
	return nil
}

// work runs the workers and the health checks to their end.
func work(ctx context.Context, o options, broker *client, record *recorder) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var workers, checks sync.WaitGroup
	var number atomic.Int64
	for range o.workers {
		workers.Go(func() {
			for ctx.Err() == nil {
				call := number.Add(1)
				if o.calls > 0 && call > o.calls {
					return
				}
				hashOnce(ctx, o.profile, call, broker, record)
				wait(ctx, o.interval)
			}
		})
	}
	checks.Go(func() {
		for ctx.Err() == nil {
			if err := broker.health(ctx); ctx.Err() == nil {
				record.checked(err)
			}
			wait(ctx, healthInterval)
		}
	})
	workers.Wait()
	cancel()
	checks.Wait()
}

func hashOnce(ctx context.Context, profile string, call int64, broker *client, record *recorder) {
	id := strconv.FormatInt(call, 10)
	began := time.Now()
	algorithm, err := broker.hash(ctx, profile, []byte("document "+id), id)
	switch {
	case ctx.Err() != nil: // the application was ended in the middle of a call
	case err != nil:
		record.failed(err)
	default:
		record.hashed(algorithm, began, time.Now())
	}
}

func wait(ctx context.Context, interval time.Duration) {
	if interval == 0 {
		return
	}
	timer := time.NewTimer(interval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// maxEcho is the largest body of a request for /echo, in bytes.
const maxEcho = 1 << 20

// echo answers with what the request had.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEcho))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(stats.Echo{Method: r.Method, Path: r.URL.Path, Header: r.Header, Body: string(body)}); err != nil {
		fmt.Fprintln(os.Stderr, "app: answering /echo:", err)
	}
}

// serveStats answers requests by HTTP until close is called.
func serveStats(address string, record *recorder) (close func(), err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for GET /stats: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(record.snapshot()); err != nil {
			fmt.Fprintln(os.Stderr, "app: answering GET /stats:", err)
		}
	})
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/echo", echo)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "app: answering GET /stats:", err)
		}
	}()
	return func() {
		if err := server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "app:", err)
		}
	}, nil
}
