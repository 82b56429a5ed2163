// SPDX-License-Identifier: Apache-2.0

// Command bench-clients compares each client with the gRPC client of its language. Both call the same broker, in turns. See
// docs/reports/clients.md. "make bench-clients" runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/clientload"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// options are the settings of the command line.
type options struct {
	measurement.Rounds
	clients []string
}

func main() { runner.Main("bench-clients", readCommandLine, run) }

// readCommandLine reads the command line, for the clients of the repository.
func readCommandLine(args []string) (options, error) {
	repository, err := environment.Repository()
	if err != nil {
		return options{}, err
	}
	clients, err := clientload.Clients(repository)
	if err != nil {
		return options{}, err
	}
	return readOptions(args, clients)
}

// readOptions reads the command line. clients are the available clients.
func readOptions(args, clients []string) (options, error) {
	o := options{Rounds: measurement.Rounds{Rounds: 45, Duration: 100 * time.Millisecond}}
	set := flag.NewFlagSet("bench-clients", flag.ContinueOnError)
	o.Flags(set)
	only := set.String("only", "", "`names` of clients with commas between them; all if empty")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	o.clients = clients
	if *only != "" {
		o.clients = strings.Split(*only, ",")
	}
	for _, name := range o.clients {
		if !slices.Contains(clients, name) {
			return o, fmt.Errorf("found --only %q, expected names of %s", *only, strings.Join(clients, ", "))
		}
	}
	return o, o.Check(set)
}

func run(ctx context.Context, o options) (err error) {
	repository, err := environment.Repository()
	if err != nil {
		return err
	}
	b, err := startBroker(ctx, repository)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	r := &results{options: o, began: time.Now(), found: map[place][]clientload.Measured{}}
	programs := map[string]*clientload.Program{}
	defer func() {
		for _, p := range programs {
			err = errors.Join(err, p.Close())
		}
	}()
	for _, name := range o.clients {
		if programs[name], err = clientload.Start(ctx, repository, name, b.socket, true); err != nil {
			return err
		}
	}
	for round := range o.Rounds.Rounds + 1 {
		found, duration := r.found, r.options.Duration
		if round == 0 {
			found, duration = map[place][]clientload.Measured{}, max(duration, firstRound)
			fmt.Fprintln(os.Stderr, "a round that does not count")
		} else {
			fmt.Fprintf(os.Stderr, "round %d of %d\n", round, o.Rounds.Rounds)
		}
		for _, i := range rand.Perm(len(o.clients)) {
			if err := r.round(o.clients[i], programs[o.clients[i]], duration, found); err != nil {
				return fmt.Errorf("%s: %w", o.clients[i], err)
			}
		}
	}
	r.took = time.Since(r.began)
	return runner.Write(o.Report, r.document())
}

// firstRound is the shortest time of a measurement in the first round. That round does not count, because the virtual machines of
// Java and JavaScript first have to compile the code that runs often.
const firstRound = time.Second

// callers are the numbers of callers that are measured.
var callers = []int{1, 16, 64}

// ways has the ways of calls of each operation.
var ways = map[string][]string{
	clientload.HashData: {clientload.Bare, clientload.Unary, clientload.Exchange},
	clientload.Health:   {clientload.Bare, clientload.Unary},
}

// operations are the measured operations, in the order of the report.
var operations = []string{clientload.HashData, clientload.Health}

// round measures a client once, its ways in random order, and adds the results.
func (r *results) round(name string, p *clientload.Program, duration time.Duration, to map[place][]clientload.Measured) error {
	for _, operation := range operations {
		for _, n := range callers {
			for _, i := range rand.Perm(len(ways[operation])) {
				at := place{name, ways[operation][i], operation, n}
				load := clientload.Load{Way: at.way, Operation: at.operation, Callers: at.callers, Millis: duration.Milliseconds()}
				// A program connects at its first call.
				warm := load
				warm.Millis /= 2
				if _, err := p.Make(warm); err != nil {
					return err
				}
				found, err := p.Make(load)
				if err != nil {
					return err
				}
				to[at] = append(to[at], found)
			}
		}
	}
	return nil
}
