// SPDX-License-Identifier: Apache-2.0

// Command bench-clients measures each client beside the client of gRPC of its language, both against the
// same broker, in turns. See docs/reports/clients.md. "make bench-clients" runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/clientload"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// options are the settings of the command line.
type options struct {
	report   string
	rounds   int
	duration time.Duration
	clients  []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench-clients:", err)
		os.Exit(1)
	}
}

// readOptions reads the command line. The clients are those that there are.
func readOptions(args, clients []string) (options, error) {
	var o options
	set := flag.NewFlagSet("bench-clients", flag.ContinueOnError)
	set.StringVar(&o.report, "report", "", "Markdown `file` to write; standard output if empty")
	set.IntVar(&o.rounds, "rounds", 11, "how `often` everything is measured")
	set.DurationVar(&o.duration, "duration", 300*time.Millisecond, "how `long` each measurement takes, 1m at most")
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
	switch {
	case set.NArg() > 0:
		return o, fmt.Errorf("found the argument %q, expected flags only", set.Arg(0))
	case o.rounds < 1:
		return o, fmt.Errorf("found --rounds %d, expected 1 or more", o.rounds)
	case o.duration < 100*time.Millisecond || o.duration > time.Minute:
		return o, fmt.Errorf("found --duration %s, expected 100ms to 1m", o.duration)
	}
	return o, nil
}

func run(ctx context.Context, args []string) (err error) {
	repository, err := environment.Repository()
	if err != nil {
		return err
	}
	clients, err := clientload.Clients(repository)
	if err != nil {
		return err
	}
	o, err := readOptions(args, clients)
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
	for round := range o.rounds + 1 {
		found, duration := r.found, r.options.duration
		if round == 0 {
			found, duration = map[place][]clientload.Measured{}, max(duration, firstRound)
			fmt.Fprintln(os.Stderr, "a round that does not count")
		} else {
			fmt.Fprintf(os.Stderr, "round %d of %d\n", round, o.rounds)
		}
		for _, i := range rand.Perm(len(o.clients)) {
			if err := r.round(o.clients[i], programs[o.clients[i]], duration, found); err != nil {
				return fmt.Errorf("%s: %w", o.clients[i], err)
			}
		}
	}
	r.took = time.Since(r.began)
	text := r.document()
	if o.report == "" {
		_, err := fmt.Print(text)
		return err
	}
	return os.WriteFile(o.report, []byte(text), 0o644) //nolint:gosec // for everybody to read
}

// firstRound is how long a measurement of the first round takes at least, which does not count: the machines of Java and
// JavaScript compile what they run often.
const firstRound = time.Second

// callers are the numbers of callers that are measured.
var callers = []int{1, 16, 64}

// ways has the ways of calls of each operation.
var ways = map[string][]string{
	clientload.HashData: {clientload.Bare, clientload.Unary, clientload.Exchange},
	clientload.Health:   {clientload.Bare, clientload.Unary},
}

// operations are what is measured, in the order of the report.
var operations = []string{clientload.HashData, clientload.Health}

// round measures a client once, its ways in random order, and adds to what was found.
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
