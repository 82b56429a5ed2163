// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// reconciler counts the pods of a namespace and makes events on their owners. Requests
// name a namespace.
type reconciler struct {
	cached   client.Reader
	live     client.Reader
	recorder events.EventRecorder
	options  Options
	// limit bounds how many events are made in a second.
	limit flowcontrol.PassiveRateLimiter

	mu sync.Mutex
	// namespaces has the namespaces of which there is something to remember.
	namespaces map[string]namespaceState
}

// namespaceState is what is remembered of one namespace.
type namespaceState struct {
	// missing and outdated are the numbers of pods that were counted last.
	missing, outdated int
	// reports are the last events on owners of pods, by the UID of the owner.
	reports map[types.UID]report
	// label is the value of the injection label that an event called without effect.
	// labelReported is true where there was such an event.
	label         string
	labelReported bool
}

// counts are numbers of pods. The refused ones are among the missing.
type counts struct{ missing, refused, outdated, waiting int }

// report is what an event said to an owner.
type report struct {
	counts
	at time.Time
}

// found is what was found of one owner's pods.
type found struct {
	counts
	owner corev1.ObjectReference
	pods  int
	// refusal is why a new pod like one of the refused would be.
	refusal string
}

func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var namespace corev1.Namespace
	err := r.cached.Get(ctx, request.NamespacedName, &namespace)
	gone := apierrors.IsNotFound(err)
	if err != nil && !gone {
		return reconcile.Result{}, err
	}
	if gone || !namespace.DeletionTimestamp.IsZero() || r.options.excluded(request.Name) {
		r.forget(request.Name)
		return reconcile.Result{}, nil
	}
	r.reportLabel(&namespace)
	var pods corev1.PodList
	if err := r.cached.List(ctx, &pods, client.InNamespace(request.Name), client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, err
	}
	unset, soon, err := r.unset(ctx, request.Name, pods.Items)
	if err != nil {
		return reconcile.Result{}, err
	}
	all := r.count(pods.Items, namespace.Labels[contract.InjectionLabel] == contract.InjectionEnabled, unset)
	r.remember(request.Name, all)
	result, err := r.report(ctx, request.Name, all)
	if soon > 0 && (result.RequeueAfter == 0 || soon < result.RequeueAfter) {
		result.RequeueAfter = soon
	}
	return result, err
}

// count counts the pods of a namespace by their direct owner. unset are those that wait
// for a first set. It leaves out owners of whose pods there is nothing to report.
func (r *reconciler) count(pods []corev1.Pod, byDefault bool, unset map[types.UID]bool) map[types.UID]*found {
	all := map[types.UID]*found{}
	for i := range pods {
		pod := &pods[i]
		owner := directOwner(pod)
		f, ok := all[owner.UID]
		if !ok {
			f = &found{owner: owner}
			all[owner.UID] = f
		}
		switch r.options.judge(pod, byDefault) {
		case missing:
			f.missing++
		case refused:
			f.missing++
			f.refused++
			if _, err := r.options.Wanted(pod, byDefault); err != nil {
				f.refusal = err.Error()
			}
		case outdated:
			f.outdated++
		case waiting:
			if unset[pod.UID] {
				f.waiting++
			}
		}
		f.pods++
	}
	for uid, f := range all {
		if f.counts == (counts{}) {
			delete(all, uid)
		}
	}
	return all
}

// remember stores the numbers for metrics, and drops the reports to owners of whose
// pods there is nothing to report any more.
func (r *reconciler) remember(namespace string, all map[types.UID]*found) {
	r.update(namespace, func(known *namespaceState) {
		known.missing, known.outdated = 0, 0
		for _, f := range all {
			known.missing += f.missing
			known.outdated += f.outdated
		}
		maps.DeleteFunc(known.reports, func(uid types.UID, _ report) bool { return all[uid] == nil })
	})
}

// update changes what is remembered of a namespace, and drops the namespace when that is
// nothing.
func (r *reconciler) update(namespace string, change func(*namespaceState)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.namespaces[namespace]
	change(&known)
	if known.missing == 0 && known.outdated == 0 && len(known.reports) == 0 && !known.labelReported {
		delete(r.namespaces, namespace)
	} else {
		r.namespaces[namespace] = known
	}
}

// forget drops what is remembered of a namespace.
func (r *reconciler) forget(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.namespaces, namespace)
}

// report makes an event on each owner for which there is something new. It requeues the
// namespace where the limit is reached, and when events have to be repeated.
func (r *reconciler) report(ctx context.Context, namespace string, all map[types.UID]*found) (reconcile.Result, error) {
	if len(all) == 0 {
		return reconcile.Result{}, nil
	}
	for uid, f := range all {
		if !r.isNews(namespace, uid, f.counts) {
			continue
		}
		if !r.limit.TryAccept() {
			return reconcile.Result{RequeueAfter: limitPause}, nil
		}
		owner, err := topOwner(ctx, r.live, f.owner)
		if err != nil {
			return reconcile.Result{}, err
		}
		r.event(owner, f)
		r.update(namespace, func(known *namespaceState) {
			if known.reports == nil {
				known.reports = map[types.UID]report{}
			}
			known.reports[uid] = report{f.counts, time.Now()}
		})
	}
	return reconcile.Result{RequeueAfter: repeatAfter}, nil
}

// isNews reports whether an owner gets an event: for numbers that are new, worse, to be
// corrected in another way, or reported an hour ago.
func (r *reconciler) isNews(namespace string, uid types.UID, now counts) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, was := r.namespaces[namespace].reports[uid]
	worse := now.missing > before.missing || now.refused > before.refused || now.outdated > before.outdated || now.waiting > before.waiting
	corrected := before.refused > 0 && now.refused == 0 && now.missing > 0
	return !was || worse || corrected || time.Since(before.at) >= repeatAfter
}
