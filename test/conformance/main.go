// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/conformance/wire"
	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// options are the settings of the command line.
type options struct {
	quick  bool
	root   string // of the repository
	cache  string // folder for downloads
	report string // file to write, if any
}

// No broker may be left behind, even if nobody reads the output any more.
func main() { runner.Main("conformance", readOptions, run, syscall.SIGPIPE) }

func readOptions(args []string) (options, error) {
	var o options
	set := flag.NewFlagSet("conformance", flag.ContinueOnError)
	set.BoolVar(&o.quick, "quick", false, "run a part that takes less than a minute: every vector of the smaller sets, some of the larger ones")
	set.StringVar(&o.root, "root", filepath.Join("..", ".."), "root `folder` of the repository")
	set.StringVar(&o.cache, "cache", "", "`folder` for downloads (default: conformance in $CRYPTO_BROKER_CACHE, or in .cache of the repository)")
	set.StringVar(&o.report, "report", "", "`file` to write the results to, in Markdown")
	set.Usage = func() {
		fmt.Fprint(set.Output(), "Sends published test vectors through the socket of a broker, and exits with 1 where an answer is wrong.\n\nFlags:\n")
		set.PrintDefaults()
	}
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if set.NArg() > 0 {
		return o, fmt.Errorf("found the argument %q, expected flags only", set.Arg(0))
	}
	return o, nil
}

// errFailed means that vectors failed, which the results name.
var errFailed = errors.New("the broker gave wrong answers, see FAILED above")

func run(ctx context.Context, o options) (err error) {
	started := time.Now()
	if o.cache == "" {
		o.cache = filepath.Join(o.root, ".cache", "conformance")
		if cache := os.Getenv("CRYPTO_BROKER_CACHE"); cache != "" {
			o.cache = filepath.Join(cache, "conformance")
		}
	}
	plan := newPlan(o.quick)
	runner.Progress("reading the vectors")
	if err := plan.addVectors(ctx, o); err != nil {
		return err
	}
	runner.Progress("building the broker")
	b, err := startBroker(ctx, o.root, plan.profiles)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	client, err := wire.Connect(b.socket)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	results, err := plan.run(ctx, client)
	if err != nil {
		return err
	}
	results.took = time.Since(started)
	results.broker = b.version
	results.print(os.Stdout)
	if o.report != "" {
		if err := os.WriteFile(o.report, results.document(time.Now(), measurement.Machine()+", load "+measurement.Load()), 0o644); err != nil {
			return fmt.Errorf("write the results: %w", err)
		}
	}
	if results.failures() > 0 {
		return errFailed
	}
	return nil
}
