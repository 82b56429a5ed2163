// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"context"
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

// reconciler counts the pods of a namespace and tells their owners. Requests name
// a namespace.
type reconciler struct {
	cached   client.Reader
	live     client.Reader
	recorder events.EventRecorder
	options  Options
	// limit bounds how many owners are told of.
	limit flowcontrol.PassiveRateLimiter

	mu sync.Mutex
	// seen is what was found last, by namespace, where anything is missing or
	// outdated.
	seen map[string]counts
	// told is what was told last to whom, by namespace.
	told map[string]map[types.UID]telling
	// labelled is the value of the label by which a namespace was told that it has
	// no effect, by namespace.
	labelled map[string]string
}

// counts are numbers of pods. The refused ones are among the missing.
type counts struct{ missing, refused, outdated, waiting int }

// telling is what an owner was told.
type telling struct {
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
	r.tellOfLabel(&namespace)
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
	result, err := r.tell(ctx, request.Name, all)
	if soon > 0 && (result.RequeueAfter == 0 || soon < result.RequeueAfter) {
		result.RequeueAfter = soon
	}
	return result, err
}

// count finds what is to be said of the pods of a namespace, by what made them.
// unset are those that wait for a first set.
func (r *reconciler) count(pods []corev1.Pod, byDefault bool, unset map[types.UID]bool) map[types.UID]*found {
	all := map[types.UID]*found{}
	for i := range pods {
		pod := &pods[i]
		owner := direct(pod)
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

// remember takes in the numbers for metrics, and drops what was told to owners
// of whom there is nothing to be said any more.
func (r *reconciler) remember(namespace string, all map[types.UID]*found) {
	var sum counts
	for _, f := range all {
		sum.missing += f.missing
		sum.outdated += f.outdated
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if sum == (counts{}) {
		delete(r.seen, namespace)
	} else {
		r.seen[namespace] = sum
	}
	if len(all) == 0 {
		delete(r.told, namespace)
	}
	for uid := range r.told[namespace] {
		if _, still := all[uid]; !still {
			delete(r.told[namespace], uid)
		}
	}
}

func (r *reconciler) forget(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.seen, namespace)
	delete(r.told, namespace)
	delete(r.labelled, namespace)
}

// tell makes an event for each owner that there is news for. It comes back for
// those that there is no room for now, and when what was told is to be told
// again.
func (r *reconciler) tell(ctx context.Context, namespace string, all map[types.UID]*found) (reconcile.Result, error) {
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
		owner, err := top(ctx, r.live, f.owner)
		if err != nil {
			return reconcile.Result{}, err
		}
		r.event(owner, f)
		r.mu.Lock()
		if r.told[namespace] == nil {
			r.told[namespace] = map[types.UID]telling{}
		}
		r.told[namespace][uid] = telling{f.counts, time.Now()}
		r.mu.Unlock()
	}
	return reconcile.Result{RequeueAfter: repeatAfter}, nil
}

// isNews tells whether an owner is to be told: what is new, worse, to be mended in
// another way, or as it was an hour ago.
func (r *reconciler) isNews(namespace string, uid types.UID, now counts) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, was := r.told[namespace][uid]
	worse := now.missing > before.missing || now.refused > before.refused || now.outdated > before.outdated || now.waiting > before.waiting
	corrected := before.refused > 0 && now.refused == 0 && now.missing > 0
	return !was || worse || corrected || time.Since(before.at) >= repeatAfter
}
