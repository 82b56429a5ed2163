// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"context"
	"net/netip"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
)

// ask is the reconciler of broker-confirmation. It asks a broker if that is the next
// action, leaves annotating to write, and requeues the pod for the action after that.
func (d *Distributor) ask(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	d.mu.Lock()
	b, err := d.observe(ctx, request.NamespacedName)
	if err != nil || b == nil {
		d.mu.Unlock()
		return reconcile.Result{}, err
	}
	what, pause := b.next(time.Now())
	at, instance := b.pod.address, b.pod.instance
	d.mu.Unlock()

	if what == actionAsk {
		d.question(ctx, request.Namespace, b, at, instance)
		d.mu.Lock()
		what, pause = b.next(time.Now())
		d.mu.Unlock()
	}

	d.report(b, request.Namespace)
	d.mu.Lock()
	priority := b.priority()
	d.mu.Unlock()
	if what == actionAnnotate {
		d.writing.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request)
		return reconcile.Result{}, nil
	}
	if what == actionAsk {
		pause = time.Millisecond
	}
	return reconcile.Result{RequeueAfter: pause, Priority: &priority}, nil
}

// question asks a broker and records the answer.
func (d *Distributor) question(ctx context.Context, namespace string, b *broker, at netip.AddrPort, instance string) {
	d.mu.Lock()
	timeout := confirm.Timeout
	if b.asked.IsZero() {
		timeout = firstTimeout
	}
	d.mu.Unlock()
	asking, done := context.WithTimeout(ctx, timeout)
	answer, failure := d.options.Ask(asking, at)
	done()
	if d.record(ctx, b, at, instance, answer, failure) && d.options.RevisionAhead != nil {
		d.options.RevisionAhead(namespace)
	}
}

// record records an answer or a failure. It ignores a failure while the operator stops, and an
// answer of an earlier instance of the container. It reports whether the broker serves a higher
// revision than it should.
func (d *Distributor) record(ctx context.Context, b *broker, at netip.AddrPort, instance string, answer confirm.Answer, failure error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	switch {
	case ctx.Err() != nil || b.pod.instance != instance || b.pod.address != at:
	case failure != nil:
		b.recordFailure(now)
		log.FromContext(ctx).V(1).Info("broker not confirmed", "pod", b.pod.name, "reason", failure.Error())
	case b.recordAnswer(answer, d.brokers, now):
		d.options.Traces.Confirmed(b.traced())
		if b.isTimed() {
			b.observeTimes(now)
		}
	}
	return b.ahead()
}

// report reports that the class of a broker has changed, by its answer or because time has
// passed.
func (d *Distributor) report(b *broker, namespace string) {
	d.mu.Lock()
	now := b.class(time.Now())
	changed := now != b.reported
	b.reported = now
	d.mu.Unlock()
	if changed {
		d.options.Changed(namespace)
	}
}
