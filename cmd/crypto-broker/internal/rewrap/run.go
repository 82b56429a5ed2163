// SPDX-License-Identifier: Apache-2.0

package rewrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/connection"
)

// MaxParallel is the largest number of keys that are rewrapped at one time. A broker has at most as
// many calls of one connection.
const MaxParallel = 64

// Run rewraps the keys of one input. It must not be reused.
type Run struct {
	Broker *connection.Broker
	// Request has the profile, the context and the new key of each call.
	Request  *v1.RewrapKeyRequest
	Parallel int

	rewrapped, already, failed, ignored atomic.Int64

	mu     sync.Mutex
	warned bool
	// skipped has the providers with keys that were not rewrapped because a key manager was not
	// available, by their names in wrapped keys.
	skipped map[string]skippedKeys
	// unavailable is the failure to reach the broker. No job begins after it.
	unavailable error
}

// job rewraps one key.
type job struct {
	name string
	// do replaces the key. It reports whether the key has the newest version already.
	do func(context.Context) (already bool, err error)
}

// errIgnored means that a file in a directory has no wrapped key.
var errIgnored = errors.New("the file has no wrapped key")

// Files rewraps the keys in files, and in all regular files in directories. The summary is one line.
func (r *Run) Files(ctx context.Context, paths []string, summary io.Writer) error {
	return r.run(ctx, r.files(paths), summary)
}

// Lines rewraps the keys that the lines of an input have in hexadecimal digits. The new lines are
// in the order of the old ones. The line of a key that failed stays unchanged.
func (r *Run) Lines(ctx context.Context, from io.Reader, to, summary io.Writer) error {
	return r.run(ctx, r.lines(from, to), summary)
}

// run does all jobs, several at one time, and writes the summary. jobs calls its argument with
// each job until the argument returns false.
func (r *Run) run(ctx context.Context, jobs func(yield func(job) bool) error, summary io.Writer) error {
	r.skipped = map[string]skippedKeys{}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := connection.ReportProgress(r.Broker.Stderr, func() string { return r.Broker.Progress(r.summary()) })
	slots := make(chan struct{}, r.Parallel)
	var all sync.WaitGroup
	err := jobs(func(job job) bool {
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
	r.reportSkipped()
	fmt.Fprintln(summary, r.summary())
	switch {
	case r.unavailable != nil:
		return r.unavailable
	case err != nil:
		return err
	case ctx.Err() != nil:
		return errors.New("interrupted: run the command again for the rest")
	case r.failed.Load() > 0:
		return commandline.ErrFound
	}
	return nil
}

func (r *Run) do(ctx context.Context, cancel context.CancelFunc, job job) {
	already, err := job.do(ctx)
	var refused *connection.Failure
	switch {
	case errors.Is(err, errIgnored):
		r.ignored.Add(1)
	case errors.As(err, new(*managerError)):
		r.report(job.name, err)
	case errors.As(err, &refused) && refused.Exit == commandline.ExitUnavailable:
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
func (r *Run) report(name string, err error) {
	r.failed.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.Broker.Stderr, "%s: %v\n", name, err)
}

func (r *Run) summary() string {
	return fmt.Sprintf("rewrapped %d, already new %d, failed %d, ignored %d", r.rewrapped.Load(), r.already.Load(), r.failed.Load(), r.ignored.Load())
}

// warn prints the warning of a deprecated profile once.
func (r *Run) warn(metadata *v1.Metadata) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.warned {
		connection.WarnDeprecated(r.Broker.Stderr, metadata)
		r.warned = metadata.GetDeprecation() != nil
	}
}
