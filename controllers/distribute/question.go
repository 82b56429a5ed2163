// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
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
		answer, failure := d.options.Ask(ctx, at)
		if ctx.Err() != nil {
			return reconcile.Result{}, nil // stopping: no answer says nothing
		}
		d.mu.Lock()
		now := time.Now()
		switch {
		case b.pod.instance != instance || b.pod.address != at:
			// Another container answered than the one that is there now.
		case failure != nil:
			b.unheard(now)
		case b.heard(answer, now) && b.brought():
			propagationDuration.Observe(now.Sub(b.target.Written).Seconds())
		}
		what, pause = b.next(now)
		d.mu.Unlock()
		if failure != nil {
			log.FromContext(ctx).V(1).Info("broker not confirmed", "pod", request.NamespacedName, "reason", failure.Error())
		}
	}

	d.report(b, request.Namespace)
	if what == annote {
		d.writing.Add(request)
		return reconcile.Result{}, nil
	}
	if what == ask {
		pause = time.Millisecond
	}
	return reconcile.Result{RequeueAfter: pause}, nil
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
