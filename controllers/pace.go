// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// holdBack is how long new numbers are kept from a status that says nothing else
// new, so that pods that come and go are one write, and so are brokers that take a
// set one after the other. The numbers at the end of a change that somebody may be
// waiting for are written at once.
const holdBack = 2 * time.Second

// holdBackMoving is the same while brokers are on their way to another set. Most
// profiles of a set did not change with it, and nobody waits for news of them: they
// get none where all brokers arrive, which takes less.
const holdBackMoving = 30 * time.Second

// pace decides when a status is worth writing. It is safe for concurrent use.
type pace struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]pending
}

// pending is what is known of an object whose status is not final.
type pending struct {
	// since is when its status began to differ from what is written.
	since time.Time
	// followed is true when the object itself changed, so that somebody may be
	// waiting for what becomes of it.
	followed bool
}

func newPace() *pace { return &pace{objects: map[types.NamespacedName]pending{}} }

// wait is how long to wait before the status of an object is written, if it
// differs from what is written. urgent is true when there is more to say than
// numbers, settled when the numbers don't move.
func (p *pace) wait(name types.NamespacedName, differs, urgent, settled bool, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.objects[name]
	o.followed = o.followed || urgent
	switch {
	case !differs:
		o.since = time.Time{}
	case o.since.IsZero():
		o.since = now
	}
	pause := time.Duration(0)
	if differs && !urgent {
		least := holdBack
		switch {
		case o.followed && settled:
			least = 0
		case !o.followed && !settled:
			least = holdBackMoving
		}
		pause = max(0, o.since.Add(least).Sub(now))
	}
	if pause == 0 {
		o.since = time.Time{} // the caller writes, or has nothing to write
	}
	o.followed = o.followed && !settled
	if o == (pending{}) {
		delete(p.objects, name)
	} else {
		p.objects[name] = o
	}
	return pause
}

// retain drops what is known of objects of a namespace that are gone.
func (p *pace) retain(namespace string, exists func(name string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for object := range p.objects {
		if object.Namespace == namespace && !exists(object.Name) {
			delete(p.objects, object)
		}
	}
}
