// SPDX-License-Identifier: Apache-2.0

// Command attack starts a broker in a control group with little memory, and attacks it as
// one caller in every known way. Meanwhile it measures how another caller is served. See
// --help.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// options are the settings of the command line.
type options struct {
	root     string // of the repository
	broker   string // the program to attack; if empty, it is built
	attacks  []attack
	list     bool
	fairness bool
	rounds   int
	time     time.Duration // shortest duration of each attack
	ordinary time.Duration // of the ordinary load before it; 0 for none
	limit    int64         // of the control group in bytes
	verbose  bool
}

func main() {
	if servedAsCaller() {
		return
	}
	// SIGPIPE comes with each connection that the broker closes.
	signal.Ignore(syscall.SIGPIPE)
	runner.Main("attack", readOptions, run)
}

func readOptions(args []string) (options, error) {
	var o options
	var only string
	var seconds, ordinary float64
	set := flag.NewFlagSet("attack", flag.ContinueOnError)
	set.StringVar(&o.root, "root", filepath.Join("..", ".."), "root `folder` of the repository")
	set.StringVar(&o.broker, "broker", "", "`path` of the broker to attack (default: it is built)")
	set.StringVar(&only, "only", "", "`names` of attacks, separated by commas; a name that ends in * stands for all that begin so")
	set.BoolVar(&o.list, "list", false, "list the attacks and do nothing")
	set.BoolVar(&o.fairness, "fairness", false, "measure the other caller's latency in rounds, and print ratios with their spread")
	set.IntVar(&o.rounds, "rounds", 5, "`number` of rounds of --fairness")
	set.Float64Var(&seconds, "seconds", 5, "how many `seconds` an attack lasts; some take longer")
	set.Float64Var(&ordinary, "ordinary", 2, "how many `seconds` the ordinary load before each attack lasts")
	set.Int64Var(&o.limit, "memory", 128<<20, "memory limit of the broker's control group in `bytes`")
	set.BoolVar(&o.verbose, "log", false, "print the broker's log after each attack")
	set.Usage = func() {
		fmt.Fprint(set.Output(), `Attacks a broker as the caller a, while the caller b makes small hashes.

Each attack has a broker of its own in a control group with a memory limit, and
each prints a line. An attack passes where the broker lives, no call of b fails,
and a is served again soon after it ends. A call of b fails where it takes longer
than `+callLimit.String()+`. The calls of attacks that are no abuse may not fail either.

Exit code 1 says that an attack did not pass. Needs Linux and the right to make
control groups.

Flags:
`)
		set.PrintDefaults()
	}
	if err := set.Parse(args); err != nil {
		return o, err
	}
	o.time, o.ordinary = time.Duration(seconds*float64(time.Second)), time.Duration(ordinary*float64(time.Second))
	switch {
	case set.NArg() > 0:
		return o, fmt.Errorf("found the argument %q, expected flags only", set.Arg(0))
	case o.time < time.Second || o.time > time.Minute:
		return o, fmt.Errorf("--seconds is %v, expected 1 to 60", seconds)
	case o.ordinary < 0 || o.ordinary > time.Minute:
		return o, fmt.Errorf("--ordinary is %v, expected 0 to 60", ordinary)
	case o.fairness && o.ordinary == 0:
		return o, errors.New("--ordinary is 0, and --fairness compares with it")
	case o.rounds < 1:
		return o, fmt.Errorf("--rounds is %d, expected at least 1", o.rounds)
	case o.limit < 16<<20:
		return o, fmt.Errorf("--memory is %d, expected at least %d", o.limit, 16<<20)
	}
	var err error
	o.attacks, err = chosen(only)
	return o, err
}

// chosen reads a list of names.
func chosen(only string) ([]attack, error) {
	all := attacks()
	if only == "" {
		return all, nil
	}
	var found []attack
	for name := range strings.SplitSeq(only, ",") {
		begin, open := strings.CutSuffix(name, "*")
		before := len(found)
		for _, a := range all {
			if a.name == name || open && strings.HasPrefix(a.name, begin) {
				found = append(found, a)
			}
		}
		if len(found) == before {
			return nil, fmt.Errorf("there is no attack %q, see --list", name)
		}
	}
	return slices.CompactFunc(found, func(a, b attack) bool { return a.name == b.name }), nil
}

func run(ctx context.Context, o options) (err error) {
	if o.list {
		for _, a := range o.attacks {
			fmt.Printf("%-34s %s\n", a.name, a.about)
		}
		return nil
	}
	p, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	if o.fairness {
		return fairness(ctx, o, p)
	}
	return attackAll(ctx, o, p)
}

// errInterrupted says that a signal ended the attacks.
var errInterrupted = errors.New("interrupted")

// attackAll makes each attack once and prints a line for each.
func attackAll(ctx context.Context, o options, p *programs) error {
	began := time.Now()
	var failed []string
	printHead()
	for i, a := range o.attacks {
		runner.Progress("%d of %d: %s", i+1, len(o.attacks), a.name)
		r, err := try(ctx, o, p, a)
		if ctx.Err() != nil {
			return errInterrupted // other errors are a result of the interrupt
		}
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		r.print()
		if r.verdict() != passed {
			failed = append(failed, a.name)
		}
	}
	fmt.Printf("%d attacks in %s, %d did not pass\n", len(o.attacks), time.Since(began).Round(time.Second), len(failed))
	if len(failed) > 0 {
		return fmt.Errorf("did not pass: %s", strings.Join(failed, ", "))
	}
	return nil
}
