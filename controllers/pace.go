// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// holdBack is how long new numbers are kept from a status that says nothing else
// new. A set that arrives within that time is one write to each profile of its
// namespace, not three, and so are pods that come and go.
const holdBack = 2 * time.Second

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
	if differs && !o.followed {
		pause = max(0, o.since.Add(holdBack).Sub(now))
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
