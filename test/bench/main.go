// SPDX-License-Identifier: Apache-2.0

// Command bench measures the broker, and compares it with the operations in this process
// and with a bare gRPC server. See --help and docs/reports/benchmarks.md.
package main

import (
	"context"
	"crypto/fips140"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// options are the settings of the command line.
type options struct {
	root    string // of the repository
	quick   bool
	loads   []string // names of loads; empty for all
	ways    []string // names of ways; empty for all
	callers []int
	rounds  int
	time    time.Duration // of each measurement
	procs   int           // processors of the servers; 0 for Go's default
	json    string        // file to write, if any
	report  string        // document to write the tables into, if any
	soak    time.Duration // duration of a soak, which replaces the measurements; 0 for none
	startup int           // how many starts are measured
	crowd   crowd         // the many small calls of the measurement of memory
	command string        // the command that repeats the measurement
	before  string        // path of an earlier broker to measure as well, if any
}

// No server may be left behind, even if nobody reads the output any more.
func main() { runner.Main("bench", readOptions, run, syscall.SIGPIPE) }

func readOptions(args []string) (options, error) {
	var o options
	var loads, ways, callers string
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.StringVar(&o.root, "root", filepath.Join("..", ".."), "root `folder` of the repository")
	set.BoolVar(&o.quick, "quick", false, "few short rounds: enough to see that everything works, not enough for figures")
	set.StringVar(&loads, "only", "", "measure these `loads` only, separated by commas: "+strings.Join(loadNames(), ", "))
	set.StringVar(&ways, "ways", "", "measure these `ways` only, separated by commas: "+strings.Join(wayNames(), ", "))
	set.StringVar(&callers, "callers", "1,16,64", "`numbers` of callers that call at the same time")
	set.IntVar(&o.rounds, "rounds", 9, "`number` of rounds; in each every way is measured once, in random order")
	set.DurationVar(&o.time, "time", 350*time.Millisecond, "`duration` of each measurement")
	set.IntVar(&o.procs, "procs", 0, "GOMAXPROCS of the broker and of the bare server alike (default: what they choose)")
	set.StringVar(&o.json, "json", "", "`file` to write all figures to")
	set.StringVar(&o.report, "report", "", "Markdown `file` with the markers between which to write the results")
	set.StringVar(&o.before, "before", "", "`path` of a broker that was built before a change: it is measured in the same rounds, by all ways that have a broker")
	set.DurationVar(&o.soak, "soak", 0, "call the broker for this `duration` instead, and compare what it holds before and after")
	set.Usage = func() {
		fmt.Fprint(set.Output(), "Measures the operation in process, a bare server of gRPC, and the broker side by side.\n\nFlags:\n")
		set.PrintDefaults()
	}
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if set.NArg() > 0 {
		return o, fmt.Errorf("found the argument %q, expected flags only", set.Arg(0))
	}
	o.command = command(set)
	o.startup, o.crowd = 20, crowd{connections: 400, calls: 60, waves: 5}
	if o.quick {
		o.rounds, o.time = min(o.rounds, 3), min(o.time, 100*time.Millisecond)
		o.startup, o.crowd = 2, crowd{connections: 20, calls: 60, waves: 2}
	}
	var err error
	if o.loads, err = among("load", loads, loadNames()); err != nil {
		return o, err
	}
	if o.ways, err = among("way", ways, wayNames()); err != nil {
		return o, err
	}
	if o.before != "" {
		o.ways = withEarlier(o.ways)
	}
	for text := range strings.SplitSeq(callers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxCallers {
			return o, fmt.Errorf("--callers has %q, expected numbers from 1 to %d, separated by commas", text, maxCallers)
		}
		o.callers = append(o.callers, n)
	}
	switch {
	case o.rounds < 1:
		return o, fmt.Errorf("--rounds is %d, expected at least 1", o.rounds)
	case o.time < 10*time.Millisecond:
		return o, fmt.Errorf("--time is %s, expected at least 10ms", o.time)
	case o.procs < 0:
		return o, fmt.Errorf("--procs is %d, expected 0 or more", o.procs)
	case o.soak < 0:
		return o, fmt.Errorf("--soak is %s, expected a positive duration", o.soak)
	}
	return o, nil
}

// command returns the command that repeats the measurement. Flags with paths have no value
// in it, because paths differ from machine to machine.
func command(set *flag.FlagSet) string {
	words := []string{"go run ."}
	set.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "root", "json", "report":
		case "before":
			words = append(words, "--before PATH")
		default:
			words = append(words, strings.TrimSuffix("--"+f.Name+"="+f.Value.String(), "=true"))
		}
	})
	return strings.Join(words, " ")
}

// among reads a list of names, each of which has to be one of the known names.
func among(what, list string, known []string) ([]string, error) {
	if list == "" {
		return known, nil
	}
	names := strings.Split(list, ",")
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no %s %q, expected of %s", what, name, strings.Join(known, ", "))
		}
	}
	return names, nil
}

func run(ctx context.Context, o options) (err error) {
	if fips140.Version() != runner.Module {
		return fmt.Errorf("this program has the cryptographic module %s, expected %[2]s as the broker's images have it: use make bench, or build it with GOFIPS140=%[2]s",
			fips140.Version(), runner.Module)
	}
	runner.Progress("building the broker and the bare server")
	p, err := build(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	if o.soak > 0 {
		return soak(ctx, o, p)
	}
	results := &results{options: o, began: time.Now(), machine: measurement.Machine() + ", load " + measurement.Load() + " at the start", version: p.version, grouped: p.grouped}
	if results.footprints, err = measureFootprints(ctx, o, p); err != nil {
		return err
	}
	if err := results.measure(ctx, o, p); err != nil {
		return err
	}
	results.took = time.Since(results.began)
	results.print(os.Stdout)
	if o.json != "" {
		if err := results.writeJSON(o.json); err != nil {
			return err
		}
	}
	if o.report != "" {
		if err := results.writeReport(o.report); err != nil {
			return err
		}
	}
	return results.failed()
}
