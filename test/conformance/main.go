// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// options are the settings of the command line.
type options struct {
	quick  bool
	root   string // of the repository
	cache  string // folder for downloads
	report string // file to write, if any
}

func main() {
	var o options
	flag.BoolVar(&o.quick, "quick", false, "run a part that takes less than a minute: every vector of the smaller sets, some of the larger ones")
	flag.StringVar(&o.root, "root", filepath.Join("..", ".."), "root `folder` of the repository")
	flag.StringVar(&o.cache, "cache", "", "`folder` for downloads (default: conformance in $CRYPTO_BROKER_CACHE, or in .cache of the repository)")
	flag.StringVar(&o.report, "report", "", "`file` to write the results to, in Markdown")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "Sends published test vectors through the socket of a broker, and exits with 1 where an answer is wrong.\n\nFlags:\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "conformance: found the argument %q, expected flags only\n", flag.Arg(0))
		os.Exit(2)
	}
	// No broker may be left behind, whatever signal ends this program.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
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
	progress("reading the vectors")
	if err := plan.addVectors(ctx, o); err != nil {
		return err
	}
	progress("building the broker")
	b, err := startBroker(ctx, o.root, plan.profiles)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	client, err := connect(b.socket)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.close()) }()
	results, err := plan.run(ctx, client)
	if err != nil {
		return err
	}
	results.took = time.Since(started)
	results.broker = b.version
	results.print(os.Stdout)
	if o.report != "" {
		if err := os.WriteFile(o.report, results.document(time.Now(), machine()), 0o644); err != nil {
			return fmt.Errorf("write the results: %w", err)
		}
	}
	if results.failures() > 0 {
		return errFailed
	}
	return nil
}

// progress writes what is being done, because all vectors take a while.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "conformance: "+format+"\n", args...)
}
