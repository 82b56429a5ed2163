// SPDX-License-Identifier: Apache-2.0

// Command faults breaks a real cluster, one part after the other, while applications call
// their brokers and a profile changes. For each fault it reports what was lost and how long
// it took until everything was right again. It fails if a fault loses more than it may, or
// if something stays wrong. See --help and docs/faults.md.
//
// The cluster is the program's own, named "faults", and goes at the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// options are the settings of the command line.
type options struct {
	only   []string // names of faults; empty for all
	report string   // document to write, if any
	keep   bool     // the cluster
}

func main() { runner.Main("faults", readOptions, run) }

func readOptions(args []string) (options, error) {
	var o options
	set := flag.NewFlagSet("faults", flag.ContinueOnError)
	only := set.String("only", "", "`names` of faults with commas between; all if empty: "+strings.Join(names(), ", "))
	set.StringVar(&o.report, "report", "", "Markdown `file` to write after a run of all faults; standard output if empty")
	set.BoolVar(&o.keep, "keep", false, "let the cluster stay, and use one that stayed")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if set.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q, expected flags only", set.Arg(0))
	}
	for _, name := range strings.FieldsFunc(*only, func(r rune) bool { return r == ',' || r == ' ' }) {
		if !slices.Contains(names(), name) {
			return o, fmt.Errorf("--only: found %q, expected some of %s", name, strings.Join(names(), ", "))
		}
		o.only = append(o.only, name)
	}
	if len(o.only) > 0 {
		o.report = "" // the page has all faults
	}
	return o, nil
}

func run(ctx context.Context, o options) (err error) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	s, err := start(ctx, o)
	if s != nil {
		defer func() { err = errors.Join(err, s.stop(ctx)) }()
	}
	if err != nil {
		return err
	}
	r := newResults(s)
	for _, each := range faults {
		if len(o.only) > 0 && !slices.Contains(o.only, each.name) {
			continue
		}
		one, err := s.try(ctx, each)
		if err != nil {
			return fmt.Errorf("%s: %w", each.name, err)
		}
		r.add(one)
	}
	if err := runner.Write(o.report, r.markdown()); err != nil {
		return err
	}
	return r.failed()
}
