// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// stepLimit is how long a step may take. It is reached only if something fails.
const stepLimit = 15 * time.Minute

// A step has ended when the operator has sent only requests for leases for quietFor.
const (
	quietFor   = 3 * time.Second
	quietLimit = 3 * time.Minute
)

// stepID identifies a step for the targets.
type stepID int

// The steps, in their order.
const (
	stepPods stepID = iota
	stepLeader
	stepSmall
	stepLarge
	stepCluster
	stepRow
	stepIdle
	stepNamespaces
	stepSmallAmong
	stepClusterAmong
	stepProfiles
	stepProfileAmong
	stepIdleAmong
)

// idle reports whether nothing changes in the step.
func (id stepID) idle() bool { return id == stepIdle || id == stepIdleAmong }

// step is one thing that happens to the cluster, and is measured.
type step struct {
	id   stepID
	name string
	// pods is how many pods get another set by the step.
	pods int
	// change starts the step.
	change func(context.Context) (changes, error)
	// done returns an error until the operator says that all is as it should be; nil if
	// there is nothing to wait for.
	done func(context.Context) error
}

// result is what a step cost.
type result struct {
	step
	took time.Duration
	// requests counts the requests of the operator, and refused those that the API server
	// answered with an error.
	requests map[kind]int
	refused  map[string]int
	// others names the requests that are counted as other writes and as reads.
	others map[string]int
	polls  int64
	// first, median and last are when the operator annotated a pod, since the change of its namespace. served is when the last
	// broker got the set, and said is when the status reported it, both since the last change. All are zero if no pod gets a set.
	first, median, last, served, said time.Duration
	// operator, apiServer, etcd and own are processor times. The last one is this program's.
	operator, apiServer, etcd, own time.Duration
	// peak is the most resident memory of the operator in bytes.
	peak   int64
	stored stored
}

// do makes a step and measures it.
func (b *bench) do(ctx context.Context, s step) error {
	runner.Progress("%s (%d pods get another set)", s.name, s.pods)
	if err := b.quiet(ctx); err != nil {
		return err
	}
	m := result{step: s, requests: map[kind]int{}, refused: map[string]int{}, others: map[string]int{}}
	from := len(b.audit.requests)
	if err := resetPeak(b.operator.command.Process.Pid); err != nil {
		return err
	}
	before, err := b.counters(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	made, err := s.change(ctx)
	if err != nil {
		return err
	}
	changed := made.last(begin)
	if err := b.await(ctx, s); err != nil {
		return err
	}
	m.said = time.Since(changed)
	m.took = time.Since(begin)
	after, err := b.counters(ctx)
	if err != nil {
		return err
	}
	if !s.id.idle() {
		if err := b.quiet(ctx); err != nil {
			return err
		}
	}
	if err := b.audit.read(); err != nil {
		return err
	}
	requests := b.audit.requests[from:]
	m.compare(before, after)
	m.count(requests)
	if s.pods > 0 {
		adopted, _ := b.nodes.served() // await has checked that all are served
		m.served = adopted.Sub(changed)
		m.first, m.median, m.last = delays(requests, made)
	}
	peak, err := measurement.ProcessMemory(b.operator.command.Process.Pid, "VmHWM")
	if err != nil {
		return err
	}
	m.peak = peak[0]
	return b.results.add(m, b.operator)
}

// await waits until all brokers serve the set of their namespace, and the operator knows.
func (b *bench) await(ctx context.Context, s step) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return runner.Eventually(ctx, stepLimit, "the step is done", func(ctx context.Context) error {
		select {
		case <-b.operator.exited:
			cancel() // nothing more to wait for
			return errors.New("the operator ended by itself")
		default:
		}
		if _, err := b.nodes.served(); err != nil {
			return err
		}
		if s.done == nil {
			return nil
		}
		return s.done(ctx)
	})
}

// quiet waits until the operator has nothing more to write.
func (b *bench) quiet(ctx context.Context) error {
	return runner.Eventually(ctx, quietLimit, "the operator has nothing to write", func(context.Context) error {
		if err := b.audit.read(); err != nil {
			return err
		}
		for _, r := range slices.Backward(b.audit.requests) {
			if since := time.Since(r.ended); since > quietFor {
				return nil
			} else if k := r.kind(environment.Namespace); k != kindLeases && k != kindWatches {
				return fmt.Errorf("its last request (%s %s) was %s ago", r.verb, r.resource, since.Round(time.Millisecond))
			}
		}
		return nil
	})
}

// compare sets what counters say. A process that was replaced began at zero.
func (m *result) compare(before, after counters) {
	if before.process != after.process {
		before.operator = 0
	}
	m.operator, m.apiServer, m.etcd = after.operator-before.operator, after.plane.apiServer-before.plane.apiServer, after.plane.etcd-before.plane.etcd
	m.own = after.own - before.own
	m.polls = after.polls - before.polls
	m.stored = stored{after.stored.written - before.stored.written, after.stored.held - before.stored.held}
}

func (m *result) count(requests []request) {
	for _, r := range requests {
		k := r.kind(environment.Namespace)
		m.requests[k]++
		if k == kindOther || k == kindReads {
			m.others[r.verb+" "+r.resource]++
		}
		if r.code >= http.StatusBadRequest {
			m.refused[fmt.Sprintf("%s %s: %d", r.verb, r.resource, r.code)]++
		}
	}
}

// delays returns when the first, the median and the last pod was annotated, each since
// its namespace changed.
func delays(requests []request, made changes) (first, median, last time.Duration) {
	var all []time.Duration
	for _, r := range requests {
		if r.kind(environment.Namespace) != kindPods || r.code != http.StatusOK {
			continue
		}
		if changed := made.before(r.namespace, r.ended); !changed.IsZero() {
			all = append(all, r.ended.Sub(changed))
		}
	}
	if len(all) == 0 {
		return 0, 0, 0
	}
	slices.Sort(all)
	return all[0], measurement.Median(all), all[len(all)-1]
}
