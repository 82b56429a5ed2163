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

// ask asks a broker if that is what is to be done next, leaves annotating to
// write, and comes back when it is time for more.
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

	if what == ask {
		d.question(ctx, request.Namespace, b, at, instance)
		d.mu.Lock()
		what, pause = b.next(time.Now())
		d.mu.Unlock()
	}

	d.report(b, request.Namespace)
	d.mu.Lock()
	priority := b.priority()
	d.mu.Unlock()
	if what == annote {
		d.writing.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request)
		return reconcile.Result{}, nil
	}
	if what == ask {
		pause = time.Millisecond
	}
	return reconcile.Result{RequeueAfter: pause, Priority: &priority}, nil
}

// question asks a broker and takes in what it says. That the operator stops says
// nothing about the broker, nor does what another instance of its container says
// than the one that is there now.
func (d *Distributor) question(ctx context.Context, namespace string, b *broker, at netip.AddrPort, instance string) {
	d.mu.Lock()
	patience := confirm.Timeout
	if b.asked.IsZero() {
		patience = firstPatience
	}
	d.mu.Unlock()
	asking, done := context.WithTimeout(ctx, patience)
	answer, failure := d.options.Ask(asking, at)
	done()
	if d.hear(ctx, b, at, instance, answer, failure) && d.options.Newer != nil {
		d.options.Newer(namespace)
	}
}

// hear takes in an answer, or that there was none. It returns true when the broker
// serves a higher revision than it should.
func (d *Distributor) hear(ctx context.Context, b *broker, at netip.AddrPort, instance string, answer confirm.Answer, failure error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	switch {
	case ctx.Err() != nil || b.pod.instance != instance || b.pod.address != at:
	case failure != nil:
		b.unheard(now)
		log.FromContext(ctx).V(1).Info("broker not confirmed", "pod", b.pod.name, "reason", failure.Error())
	case b.heard(answer, now) && b.brought():
		propagationDuration.Observe(now.Sub(b.target.Written).Seconds())
	}
	return b.ahead()
}

// report tells when a broker counts as something else than before, be it by its
// answer or by the time that has passed.
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
