// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"errors"
	"fmt"
	"sync"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
)

const (
	// maxBatch is how many keys a batch may have. A worker serves a batch of keys in memory
	// at once, so the limit is low.
	maxBatch = 32
	// maxAtOnce is how many keys of a batch are asked of key managers at once.
	maxAtOnce = 8
)

// Unwrapped is what became of one key of a batch. The data key is overwritten when the reply is
// written.
type Unwrapped struct {
	DataKey []byte
	Err     error
}

// UnwrapBatch serves UnwrapBatch. The results are in the order of the batch.
func (h *Handlers) UnwrapBatch(c *Call, name string, batch []WrappedKey) ([]Unwrapped, error) {
	if n := len(batch); n == 0 || n > maxBatch {
		return nil, requests.Invalid(c.Operation, "keys", "has %d elements, expected 1 to %d", n, maxBatch)
	}
	if _, err := offered(h, c, name, (*profile.Compiled).DataKeys); err != nil {
		return nil, err
	}
	results, wrappings := make([]Unwrapped, len(batch)), make([]*wrapping, len(batch))
	unwrap := func(i int) {
		r := &results[i]
		defer func() {
			if cause := recover(); cause != nil {
				r.Err = h.Panicked(c.Operation.String(), cause)
			}
		}()
		r.DataKey, wrappings[i], r.Err = h.unwrapNumber(c, name, i, batch[i])
	}
	if c.MayWait {
		c.untilDeadline() // the goroutines only read it
		var all sync.WaitGroup
		slots := make(chan struct{}, maxAtOnce)
		for i := range batch {
			slots <- struct{}{}
			all.Go(func() {
				unwrap(i)
				<-slots
			})
		}
		all.Wait()
	} else {
		for i := range batch {
			if unwrap(i); errors.Is(results[i].Err, ErrWaits) {
				break
			}
		}
	}
	used, waits := false, false
	for i, r := range results {
		c.overwriteLater(r.DataKey)
		if wrappings[i] != nil && !used {
			wrappings[i].noteUse(0)
			used = true
		}
		waits = waits || errors.Is(r.Err, ErrWaits)
	}
	if waits {
		return nil, ErrWaits
	}
	for _, w := range wrappings {
		if w != nil {
			w.noteRead()
		}
	}
	return results, nil
}

// unwrapNumber unwraps one key of a batch.
func (h *Handlers) unwrapNumber(c *Call, name string, i int, given WrappedKey) ([]byte, *wrapping, error) {
	given.Field, given.Turn = fmt.Sprintf("keys[%d].", i), c.MayWait
	policy := c.profile.DataKeys()
	if err := checkContext(c, name, policy, given.Field, given.Context); err != nil {
		return nil, nil, err
	}
	return h.unwrap(c, name, policy, given)
}
