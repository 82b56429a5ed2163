// SPDX-License-Identifier: Apache-2.0

// Package queue makes the work queues of the controllers, and the requests in them. Other parts
// of the operator may add to a queue, so a controller passes results on directly, without a write
// to the API server.
package queue

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The pause after a failure begins with minBackoff, and doubles with each further
// failure up to maxBackoff.
const (
	minBackoff = 20 * time.Millisecond
	maxBackoff = time.Minute
)

// Queue holds each request once. Requests that are added before the controller
// runs wait for it.
type Queue = priorityqueue.PriorityQueue[reconcile.Request]

// New returns an empty queue with this name in metrics.
func New(name string) Queue {
	return priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) {
		o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxBackoff)
	})
}

// Options returns the options of the controller that takes its requests from the
// queue, and handles a number of them at a time.
func Options(q Queue, concurrent int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: concurrent,
		NewQueue: func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return q
		},
	}
}
