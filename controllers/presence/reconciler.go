// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// reconciler makes events on owners of pods. Requests name the namespace and the UID of a direct
// owner. The pods have been counted when their events arrived.
type reconciler struct {
	cached   client.Reader
	live     client.Reader
	recorder events.EventRecorder
	options  Options
	tally    *tally
	// limit bounds the number of events in a second.
	limit flowcontrol.RateLimiter
}

// counts are numbers of pods. The refused ones are among the missing.
type counts struct{ missing, refused, outdated, waiting int }

// report is the content of an event on an owner.
type report struct {
	counts
	at time.Time
}

// found has the numbers of one owner's pods.
type found struct {
	counts
	owner corev1.ObjectReference
	pods  int
	// refusal is the reason why a new pod of the owner would be refused.
	refusal string
}

func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var namespace corev1.Namespace
	err := r.cached.Get(ctx, types.NamespacedName{Name: request.Namespace}, &namespace)
	if apierrors.IsNotFound(err) || err == nil && !namespace.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	uid := types.UID(request.Name)
	f, soon, err := r.find(ctx, request.Namespace, uid)
	if err != nil {
		return reconcile.Result{}, err
	}
	if f.counts == (counts{}) {
		r.tally.setReported(request.Namespace, uid, nil)
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	if last := r.tally.reported(request.Namespace, uid); !last.isOutdated(f.counts, time.Now()) {
		return reconcile.Result{RequeueAfter: sooner(soon, time.Until(last.at.Add(repeatAfter)))}, nil
	}
	if err := r.limit.Wait(ctx); err != nil {
		return reconcile.Result{}, fmt.Errorf("wait to make an event: %w", err)
	}
	return r.report(ctx, request.Namespace, uid)
}

// find returns the numbers of an owner, and the time after which they may change without an
// event, or 0.
func (r *reconciler) find(ctx context.Context, namespace string, owner types.UID) (found, time.Duration, error) {
	f, soon := r.tally.of(namespace, owner, time.Now())
	if f.waiting == 0 && soon == 0 {
		return f, 0, nil
	}
	has, err := r.hasSet(ctx, namespace)
	if has {
		f.waiting, soon = 0, 0
	}
	return f, soon, err
}

// report makes an event on an owner. It reads the numbers again, because they may have changed
// while the event waited for the limit.
func (r *reconciler) report(ctx context.Context, namespace string, uid types.UID) (reconcile.Result, error) {
	f, soon, err := r.find(ctx, namespace, uid)
	if err != nil || f.counts == (counts{}) {
		return reconcile.Result{RequeueAfter: soon}, err
	}
	owner, err := topOwner(ctx, r.live, f.owner)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.event(owner, &f)
	r.tally.setReported(namespace, uid, &report{f.counts, time.Now()})
	return reconcile.Result{RequeueAfter: sooner(soon, repeatAfter)}, nil
}

// isOutdated reports whether an owner needs another event: if there was none, if the numbers are
// new or worse, if the advice has changed, or if the last event is an hour old.
func (last *report) isOutdated(now counts, at time.Time) bool {
	if last == nil {
		return true
	}
	worse := now.missing > last.missing || now.refused > last.refused || now.outdated > last.outdated || now.waiting > last.waiting
	corrected := last.refused > 0 && now.refused == 0 && now.missing > 0
	return worse || corrected || at.Sub(last.at) >= repeatAfter
}

// sooner returns the shorter of two pauses, of which the first may be 0 for none.
func sooner(pause, least time.Duration) time.Duration {
	if pause > 0 {
		return min(pause, least)
	}
	return least
}
