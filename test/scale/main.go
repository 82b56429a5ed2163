// SPDX-License-Identifier: Apache-2.0

// Command scale measures the operator in a cluster with many pods. The API server and
// etcd are real, the operator is a process with the flags, the rights and the memory limit
// of the chart, and the webhook injects the brokers. Nobody runs the pods: a status port
// in this program answers for each broker. See --help and docs/reports/operator.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// options are the settings of the command line.
type options struct {
	pods, namespaces int
	changes          int           // in a row
	during           time.Duration // of the changes in a row
	idle             time.Duration
	moreNamespaces   int
	profiles         int
	report           string   // document to write, if any
	args             []string // of the command line
	command          string   // the command that repeats the measurement
}

func main() { runner.Main("scale", readOptions, run) }

func readOptions(args []string) (options, error) {
	o := options{args: args}
	set := flag.NewFlagSet("scale", flag.ContinueOnError)
	set.IntVar(&o.pods, "pods", 10_000, "how many `pods` with a broker there are; a tenth of them are in the first namespace")
	set.IntVar(&o.namespaces, "namespaces", 200, "how many `namespaces` they are in")
	set.IntVar(&o.changes, "changes", 100, "how many `profiles` are changed one after the other; 0 for none")
	set.DurationVar(&o.during, "during", time.Minute, "in which `time` they are changed")
	set.DurationVar(&o.idle, "idle", 10*time.Minute, "for which `time` nothing is changed, for the requests of an idle operator")
	set.IntVar(&o.moreNamespaces, "more-namespaces", 5_000, "how many `namespaces` without pods are added then; 0 for none")
	set.IntVar(&o.profiles, "profiles", 2_000, "how many `profiles` are added to one namespace at the end; 0 for none")
	set.StringVar(&o.report, "report", "", "Markdown `file` to write; standard output if empty")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	o.command = commandOf(set)
	switch {
	case set.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q, expected flags only", set.Arg(0))
	case o.namespaces < 3:
		return o, fmt.Errorf("--namespaces is %d, expected 3 or more", o.namespaces)
	case o.pods < 2*o.namespaces || o.pods > maxPods:
		return o, fmt.Errorf("--pods is %d, expected two for each namespace at least and %d at most", o.pods, maxPods)
	case o.changes < 0 || o.during < 0 || o.idle < 0 || o.moreNamespaces < 0 || o.profiles < 0:
		return o, errors.New("a number is negative, expected 0 or more")
	}
	return o, nil
}

// commandOf returns the command that repeats the measurement.
func commandOf(set *flag.FlagSet) string {
	var flags []string
	set.Visit(func(f *flag.Flag) {
		if f.Name != "report" {
			flags = append(flags, fmt.Sprintf("--%s %s", f.Name, f.Value))
		}
	})
	if len(flags) == 0 {
		return "make bench-operator"
	}
	return fmt.Sprintf("make bench-operator BENCH=%q", strings.Join(flags, " "))
}

// run measures in a network of its own, to which this program moves by running itself
// once more.
func run(ctx context.Context, o options) error {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	if programs := os.Getenv(programsVariable); programs != "" {
		return measure(ctx, o, programs)
	}
	return inOwnNetwork(ctx, o.args)
}

// measure starts everything, measures, and writes the report.
func measure(ctx context.Context, o options, programs string) (err error) {
	b, err := start(ctx, o, programs)
	if b != nil {
		defer func() { err = errors.Join(err, b.stop()) }()
	}
	if err != nil {
		return err
	}
	if err := b.runAll(ctx); err != nil {
		return errors.Join(err, b.operator.lastWords())
	}
	if o.report == "" {
		if err := runner.Write("", b.results.markdown()); err != nil {
			return err
		}
	}
	return b.results.failed()
}
