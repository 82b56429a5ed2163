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
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// options are the settings of the command line.
type options struct {
	only   []string // names of faults; empty for all
	report string   // document to write, if any
	keep   bool     // the cluster
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

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

func run(ctx context.Context, args []string) (err error) {
	o, err := readOptions(args)
	if err != nil {
		return err
	}
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
	if o.report == "" {
		fmt.Print(r.markdown())
	} else if err := os.WriteFile(o.report, []byte(r.markdown()), 0o644); err != nil {
		return err
	}
	return r.failed()
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format("15:04:05")}, args...)...)
}
