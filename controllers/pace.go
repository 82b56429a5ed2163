// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// holdBack is how long numbers that are still moving are kept from a status
// that says nothing else new. A set that arrives within that time is one write
// to each profile of the namespace, not three.
const holdBack = 2 * time.Second

// pace decides when a status is worth writing. It is safe for concurrent use.
type pace struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]object
}

type object struct {
	// moving is since when the numbers have been moving.
	moving time.Time
	// followed is true when the object itself changed, so that somebody may be
	// waiting for it to be propagated.
	followed bool
}

func newPace() *pace { return &pace{objects: map[types.NamespacedName]object{}} }

// wait is how long to wait before the status of an object is written. urgent is
// true when there is more to say than numbers, settled when the numbers don't
// move.
func (p *pace) wait(name types.NamespacedName, urgent, settled bool, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if settled {
		delete(p.objects, name)
		return 0
	}
	o := p.objects[name]
	if o.moving.IsZero() {
		o.moving = now
	}
	o.followed = o.followed || urgent
	p.objects[name] = o
	if o.followed {
		return 0
	}
	return max(0, o.moving.Add(holdBack).Sub(now))
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
