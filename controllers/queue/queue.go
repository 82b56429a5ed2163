// SPDX-License-Identifier: Apache-2.0

// Package queue makes work queues of controllers that others may add to: a
// controller that learns something hands on what follows from it without going
// through the API server.
package queue

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Bounds of the pause after a failure: it doubles with each in a row.
const (
	leastPause = 20 * time.Millisecond
	mostPause  = time.Minute
)

// Queue holds requests, each once. What is added before its controller runs
// waits.
type Queue = priorityqueue.PriorityQueue[reconcile.Request]

// New makes a queue.
func New(name string) Queue {
	return priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) {
		o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](leastPause, mostPause)
	})
}

// Options are those of the controller that works the queue off, so many
// requests at a time.
func Options(q Queue, concurrent int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: concurrent,
		NewQueue: func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return q
		},
	}
}
