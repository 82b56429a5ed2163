// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// maxParallel is the largest number of keys that are rewrapped at one time. A broker has at most as
// many calls of one connection.
const maxParallel = 64

var _ = operation(newRewrap)

func newRewrap() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rewrap PATH…|-",
		Short: "Wrap many wrapped keys again, with the newest versions of their keys or another key",
		Long: `Wraps the wrapped keys in files and directories again, with the newest versions of
their wrapping keys, or with another key. A file is a wrapped key, in binary or in
hexadecimal digits, or what encrypt-file has written, whose data stays as it is.
Other files in a directory are ignored. With -, wrapped keys are the lines of
standard input, in hexadecimal digits; standard output has the new lines, and the
old line for a key that failed.

A file is replaced at once, or stays as it is. A key that has the newest version
already stays as it is, so the command can be repeated until nothing fails. If a
key manager is not available for the time of --timeout, its keys fail, and those of
others are rewrapped. The exit code is 0 if nothing failed, 4 if the broker cannot
be reached, and else 1.`,
		Example: `  crypto-broker rewrap --profile Orders --context "tenant a" /var/lib/orders
  crypto-broker rewrap --profile Orders --keyId orders-2027 - <keys.txt >new.txt`,
		Args: arguments(1, -1, "files and directories, or - for standard input"),
	}
	profile, bound, key := profileFlag(cmd), contextFlag(cmd), wrappingKeyFlag(cmd, "the new wrapping key; leave it out for the newest versions of the same keys")
	parallel := cmd.Flags().Int("parallel", 8, fmt.Sprintf("how many keys are rewrapped at one time (1 to %d)", maxParallel))
	r := &rewrapping{broker: brokerFlags(cmd), away: map[string]awayKeys{}}
	r.retries = true
	cmd.RunE = func(cmd *cobra.Command, paths []string) error {
		if *parallel < 1 || *parallel > maxParallel {
			return program.Usagef("--parallel is %d, expected 1 to %d", *parallel, maxParallel)
		}
		jobs := r.files(paths)
		summary := cmd.OutOrStdout()
		if len(paths) == 1 && paths[0] == standardInput {
			jobs, summary = r.lines(cmd.InOrStdin(), cmd.OutOrStdout()), cmd.ErrOrStderr()
		}
		r.request = v1.RewrapKeyRequest{Profile: *profile, Context: []byte(*bound), KeyId: *key}
		if err := r.open(cmd); err != nil {
			return err
		}
		defer r.close()
		return r.run(cmd.Context(), *parallel, jobs, summary)
	}
	return cmd
}

// rewrapping is one run of the command.
type rewrapping struct {
	*broker
	request v1.RewrapKeyRequest

	rewrapped, already, failed, ignored atomic.Int64

	mu     sync.Mutex
	warned bool
	// away has the providers with keys that were not rewrapped because a key manager was not
	// available, by their names in wrapped keys.
	away map[string]awayKeys
	// unavailable is the failure of a broker that cannot be reached. No job begins after it.
	unavailable error
}

// rewrapJob rewraps one key.
type rewrapJob struct {
	name string
	// do replaces the key. It reports whether the key has the newest version already.
	do func(context.Context) (already bool, err error)
}

// errIgnored means that a file in a directory has no wrapped key.
var errIgnored = errors.New("the file has no wrapped key")

// run does all jobs, some at one time, and writes the summary. jobs calls its argument with each
// job, until that returns false.
func (r *rewrapping) run(ctx context.Context, parallel int, jobs func(yield func(rewrapJob) bool) error, summary io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := reportProgress(r.stderr, func() string { return r.orWaiting(r.summary()) })
	slots := make(chan struct{}, parallel)
	var all sync.WaitGroup
	err := jobs(func(job rewrapJob) bool {
		slots <- struct{}{}
		if ctx.Err() != nil {
			return false
		}
		all.Go(func() {
			defer func() { <-slots }()
			r.do(ctx, cancel, job)
		})
		return true
	})
	all.Wait()
	stop()
	r.reportAway()
	fmt.Fprintln(summary, r.summary())
	switch {
	case r.unavailable != nil:
		return r.unavailable
	case err != nil:
		return err
	case ctx.Err() != nil:
		return errors.New("interrupted: run the command again for the rest")
	case r.failed.Load() > 0:
		return errFound
	}
	return nil
}

func (r *rewrapping) do(ctx context.Context, cancel context.CancelFunc, job rewrapJob) {
	already, err := job.do(ctx)
	var refused *failure
	switch {
	case errors.Is(err, errIgnored):
		r.ignored.Add(1)
	case errors.As(err, new(*awayError)):
		r.report(job.name, err)
	case errors.As(err, &refused) && refused.exit == exitUnavailable:
		r.mu.Lock()
		r.unavailable = err
		r.mu.Unlock()
		cancel()
		r.failed.Add(1)
	case err != nil:
		r.report(job.name, err)
	case already:
		r.already.Add(1)
	default:
		r.rewrapped.Add(1)
	}
}

// report writes why a key failed.
func (r *rewrapping) report(name string, err error) {
	r.failed.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.stderr, "%s: %v\n", name, err)
}

func (r *rewrapping) summary() string {
	return fmt.Sprintf("rewrapped %d, already new %d, failed %d, ignored %d", r.rewrapped.Load(), r.already.Load(), r.failed.Load(), r.ignored.Load())
}

// warn prints the warning of a deprecated profile once.
func (r *rewrapping) warn(metadata *v1.Metadata) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.warned {
		warnDeprecated(r.stderr, metadata)
		r.warned = metadata.GetDeprecation() != nil
	}
}
