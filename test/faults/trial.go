// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/test/app/stats"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

// rightWithin is how long it may take after a fault until everything is right again. The
// slowest mechanisms are back-offs of the kubelet, which wait for up to 5 minutes.
const rightWithin = 6 * time.Minute

// fault is one way to break the cluster.
type fault struct {
	name  string
	title string
	// how describes how the program makes and ends the fault. sees describes what a user sees during the fault, and act what to do.
	// All three are texts of the page.
	how, sees, act string
	// repeats reports whether applications may have to repeat calls, because a broker
	// itself goes away. No fault may make a call fail.
	repeats bool
	// silent reports whether the API server itself may refuse or delay requests.
	silent bool
	// happen makes the fault, changes the profile in the middle, and ends the fault.
	happen func(context.Context, *trial) error
}

// trial is one fault that is tried.
type trial struct {
	*suite
	pods []corev1.Pod // of the applications
	// algorithm is what the profile is changed to.
	algorithm string
	writing   sync.WaitGroup
	written   write
	undos     []func(context.Context) error
	// started is when the trial began, began when the fault did.
	started, began time.Time
	// ended is when the cause of the fault was gone.
	ended time.Time
	notes []string
}

// write is the change of the profile in the middle of a fault.
type write struct {
	at      time.Time // when the API server accepted it
	refused int       // how often the API server refused it
	said    string    // the last refusal
}

// try makes a fault and waits until everything is right again.
func (s *suite) try(ctx context.Context, f *fault) (*result, error) {
	runner.Progress("%s: %s", f.name, f.title)
	t := &trial{suite: s, algorithm: s.nextAlgorithm()}
	if err := runner.Eventually(ctx, 2*time.Minute, "the cluster is right before the fault", t.prepare); err != nil {
		return nil, err
	}
	before, err := t.counts(ctx)
	if err != nil {
		return nil, err
	}
	working, stop := context.WithCancel(ctx)
	p := t.probe(working)
	t.started = time.Now()
	t.began = t.started
	err = f.happen(working, t)
	err = errors.Join(err, t.endFault(ctx)) // the remaining causes of the fault
	r := &result{fault: f, lasted: t.ended.Sub(t.began)}
	if err == nil {
		runner.Progress("  the fault is over after %.1f s", r.lasted.Seconds())
		err = t.await(ctx, r)
	}
	stop()
	p.wait.Wait()
	t.writing.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	r.write, r.notes = t.written, t.notes
	r.withBroker, r.without = p.withBroker, p.without
	if err != nil {
		r.problems = append(r.problems, err.Error())
	}
	r.problems = append(r.problems, t.lost(ctx, r, before)...)
	r.print()
	if len(r.problems) > 0 {
		t.diagnose(ctx)
	}
	return r, nil
}

// nextAlgorithm returns another algorithm than the last one.
func (s *suite) nextAlgorithm() string {
	algorithm := workload.Algorithms[s.next%len(workload.Algorithms)]
	s.next++
	return algorithm
}

// change writes the new algorithm into the profile, again and again until the API server
// accepts it. It does not wait for that.
func (t *trial) change(ctx context.Context) {
	t.writing.Go(func() {
		for ctx.Err() == nil {
			profile := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: profileName}}
			_, err := t.ChangeHash(ctx, profile, t.algorithm)
			if err == nil {
				t.written.at = time.Now()
				return
			}
			t.written.refused++
			t.written.said = err.Error()
			if pause(ctx, 250*time.Millisecond) != nil {
				return
			}
		}
	})
}

// changed changes the profile and waits until the API server has accepted it.
func (t *trial) changed(ctx context.Context) {
	t.change(ctx)
	t.writing.Wait()
}

// undo adds a function that endFault calls. endFault calls the last one first.
func (t *trial) undo(do func(context.Context) error) {
	t.undos = append(t.undos, do)
}

// endFault ends the fault, even if the context has ended.
func (t *trial) endFault(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	var problems []error
	for _, do := range slices.Backward(t.undos) {
		problems = append(problems, do(ctx))
	}
	t.undos = nil
	if t.ended.IsZero() {
		t.ended = time.Now()
	}
	return errors.Join(problems...)
}

// causeEnded records that the cause of the fault is gone, for example because a process was killed and nothing prevents the start of
// another one.
func (t *trial) causeEnded() { t.ended = time.Now() }

func (t *trial) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	runner.Progress("  %s", text)
	t.notes = append(t.notes, text)
}

// await waits until everything is right again.
func (t *trial) await(ctx context.Context, r *result) error {
	err := runner.Eventually(ctx, rightWithin, "every broker serves the newest profile", func(ctx context.Context) error {
		last, err := t.served(ctx)
		if err == nil {
			r.served = last.Sub(t.ended)
			r.servedAfterWrite = last.Sub(t.written.at)
		}
		return err
	})
	if err == nil {
		err = runner.Eventually(ctx, rightWithin-time.Since(t.ended), "everything is right again", t.checkServed)
	}
	if err == nil {
		err = t.newPod(ctx)
	}
	r.right = time.Since(t.ended)
	return err
}

// served returns when the last application saw the new algorithm, and an error if one did
// not.
func (t *trial) served(ctx context.Context) (last time.Time, err error) {
	for i := range t.pods {
		found, err := appStats(ctx, &t.pods[i])
		if err != nil {
			return last, err
		}
		at, ok := found.Seen(t.algorithm, t.started)
		if !ok || found.Algorithm != t.algorithm {
			return last, fmt.Errorf("the application in %s sees %s, expected %s", t.pods[i].Name, found.Algorithm, t.algorithm)
		}
		if at.After(last) {
			last = at
		}
	}
	t.writing.Wait() // a served profile must have been accepted
	return last, nil
}

// counts returns what each application has counted.
func (t *trial) counts(ctx context.Context) ([]*stats.Stats, error) {
	all := make([]*stats.Stats, len(t.pods))
	for i := range t.pods {
		var err error
		if all[i], err = appStats(ctx, &t.pods[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// lost writes the number of calls since before into the result, and returns losses that are not allowed.
func (t *trial) lost(ctx context.Context, r *result, before []*stats.Stats) (problems []string) {
	after, err := t.counts(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	for i, now := range after {
		then, name := before[i], t.pods[i].Name
		if !now.Started.Equal(then.Started) {
			problems = append(problems, fmt.Sprintf("the application in %s was started again", name))
			continue
		}
		r.calls += now.Calls - then.Calls
		r.failed += now.Failed - then.Failed + now.HealthFailed - then.HealthFailed
		r.repeated += now.Retries - then.Retries
		for _, text := range now.Errors {
			if !slices.Contains(then.Errors, text) {
				r.errors = append(r.errors, text)
			}
		}
	}
	if r.failed > 0 {
		problems = append(problems, fmt.Sprintf("%d calls failed, expected none: %q", r.failed, r.errors))
	}
	if r.repeated > 0 && !r.fault.repeats {
		problems = append(problems, fmt.Sprintf("%d calls were repeated, expected none: %q", r.repeated, r.errors))
	}
	if !r.fault.silent && r.without.refused > 0 {
		problems = append(problems, fmt.Sprintf("%d of %d pods that ask for no broker were refused, expected none: %s", r.without.refused, r.without.tries, r.without.said))
	}
	return problems
}
