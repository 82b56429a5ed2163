// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// outcome is what the namespace reconciler decided for a namespace.
type outcome struct {
	// excluded is true for a namespace that never gets profiles.
	excluded bool
	// namespaced and cluster are the verdicts by metadata.name.
	namespaced, cluster map[string]render.Verdict
	// digest identifies the set that brokers are to serve, empty for none.
	digest string
	// emptied is true when the set is an empty list because the last profile
	// went.
	emptied bool
	// failure says why the set could not be written, empty when it was.
	failure string
	// withheld are the changes that are weaker and not allowed.
	withheld []downgrade.Change
	// held says why the set stays as it was although profiles of it are missing.
	held string
	// written is when the set was written, zero where it was found in place.
	written time.Time
}

// board is where the namespace reconciler leaves its decisions for those that
// report them. It is safe for concurrent use; an outcome is never changed once
// it is on the board.
type board struct {
	mu       sync.RWMutex
	outcomes map[string]outcome
}

func newBoard() *board { return &board{outcomes: map[string]outcome{}} }

// set puts an outcome on the board.
func (b *board) set(namespace string, o outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outcomes[namespace] = o
}

func (b *board) get(namespace string) (outcome, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	o, ok := b.outcomes[namespace]
	return o, ok
}

// forget drops what is known of a namespace.
func (b *board) forget(namespace string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.outcomes, namespace)
}
