// SPDX-License-Identifier: Apache-2.0

// Command bench-sessions compares encrypted sessions of a broker with a minimal server in Node.js with Redis. The same client calls
// both in turns. See docs/reports/sessions.md. "make bench-sessions" runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
	"github.com/crypto-broker/crypto-broker-operator/test/redisserver"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// options are the settings of the command line.
type options struct {
	measurement.Rounds
	sessions int
}

func main() { runner.Main("bench-sessions", readOptions, run) }

func readOptions(args []string) (options, error) {
	o := options{Rounds: measurement.Rounds{Rounds: 5, Duration: 2 * time.Second}}
	set := flag.NewFlagSet("bench-sessions", flag.ContinueOnError)
	o.Flags(set)
	set.IntVar(&o.sessions, "sessions", 100_000, "how many `sessions` fill the broker whose memory is measured")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if o.sessions < 1 || o.sessions > 1<<17 {
		return o, fmt.Errorf("found --sessions %d, expected 1 to %d", o.sessions, 1<<17)
	}
	return o, o.Check(set)
}

func run(ctx context.Context, o options) error {
	p, err := prepare(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(p.folder)
	r := &results{options: o, began: time.Now(), found: map[place][]sample{}}
	for round := range o.Rounds.Rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, o.Rounds.Rounds)
		if err := r.round(ctx, p); err != nil {
			return err
		}
	}
	if r.filled, err = fill(ctx, p, o.sessions); err != nil {
		return err
	}
	r.took = time.Since(r.began)
	return runner.Write(o.Report, r.document())
}

// programs are the measured servers and the client.
type programs struct {
	folder, node, redis, libraries, broker, client string
}

// prepare builds and downloads the programs.
func prepare(ctx context.Context) (p *programs, err error) {
	repository, err := environment.Repository()
	if err != nil {
		return nil, err
	}
	cache, err := environment.Cache(repository)
	if err != nil {
		return nil, err
	}
	p = &programs{}
	if p.folder, err = os.MkdirTemp("", "sessions"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(p.folder) // the other error is the more important one
		}
	}()
	p.broker, p.client = filepath.Join(p.folder, "broker"), filepath.Join(p.folder, "crypto-broker")
	if _, err := environment.Command(ctx, repository, os.Stderr, "go", "build", "-trimpath", "-o", p.folder+"/", "./cmd/broker", "./cmd/crypto-broker"); err != nil {
		return nil, err
	}
	p.node = filepath.Join(p.folder, "node")
	if err := os.CopyFS(p.node, os.DirFS(filepath.Join(repository, "test", "bench-sessions", "node"))); err != nil {
		return nil, err
	}
	if _, err := environment.Command(ctx, p.node, nil, "npm", "ci"); err != nil {
		return nil, err
	}
	found, libraries, err := redisserver.Find(ctx, os.Stderr, cache)
	if err != nil {
		return p, err
	}
	// The package redis-server has a link with this name only.
	p.libraries, p.redis = libraries, filepath.Join(p.folder, "redis-server")
	return p, os.Symlink(filepath.Join(found, "redis-check-rdb"), p.redis)
}

// connections are the numbers of connections that are measured.
var connections = []int{1, 10, 100}

// measurements are the client's names of the measurements.
var measurements = []string{"init", "request"}

// round measures all servers once, in random order.
func (r *results) round(ctx context.Context, p *programs) error {
	for _, n := range connections {
		for _, measured := range measurements {
			for _, i := range rand.Perm(len(servers)) {
				if err := r.one(ctx, p, place{servers[i].name, measured, n}, servers[i].start); err != nil {
					return fmt.Errorf("%s: %w", servers[i].name, err)
				}
			}
		}
	}
	return nil
}

// one starts one server, measures it, and ends it.
func (r *results) one(ctx context.Context, p *programs, at place, start func(context.Context, *programs) (*running, error)) error {
	s, err := start(ctx, p)
	if err != nil {
		return err
	}
	defer s.stop()
	// Node.js compiles code that runs often, and the broker allocates more memory.
	if _, err := bench(ctx, p, s.target, at.measured, at.connections, r.options.Duration/2); err != nil {
		return err
	}
	before, err := s.processorTime()
	if err != nil {
		return err
	}
	found, err := bench(ctx, p, s.target, at.measured, at.connections, r.options.Duration)
	if err != nil {
		return err
	}
	after, err := s.processorTime()
	if err != nil {
		return err
	}
	if found.Done > 0 {
		found.cpu = (after - before) / time.Duration(found.Done)
	}
	r.found[at] = append(r.found[at], found)
	return nil
}
