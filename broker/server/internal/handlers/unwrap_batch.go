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
	// maxBatch is the maximum number of keys that a batch may have. A worker serves a batch of
	// keys in memory at once, so the limit is low.
	maxBatch = 32
	// maxAtOnce is the maximum number of keys of a batch that key managers are asked for at once.
	maxAtOnce = 8
)

// Unwrapped is the result for one key of a batch. The data key is overwritten when the reply is
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
	for i := range batch {
		batch[i].Field, batch[i].Turn = fmt.Sprintf("keys[%d].", i), c.MayWait
	}
	find := func(i int) {
		defer h.guard(c, &results[i].Err)
		wrappings[i], results[i].Err = h.findOfBatch(c, name, batch[i])
	}
	unwrap := func(i int) {
		defer h.guard(c, &results[i].Err)
		if results[i].Err == nil {
			results[i].DataKey, results[i].Err = wrappings[i].unwrap(batch[i])
		}
	}
	if c.MayWait {
		c.untilDeadline() // the goroutines only read it
		var all sync.WaitGroup
		slots := make(chan struct{}, maxAtOnce)
		for i := range batch {
			slots <- struct{}{}
			all.Go(func() {
				find(i)
				unwrap(i)
				<-slots
			})
		}
		all.Wait()
	} else {
		// A batch that has to wait is called again, so no key is unwrapped before all wrapping
		// keys are found.
		for i := range batch {
			if find(i); errors.Is(results[i].Err, ErrWaits) {
				return nil, ErrWaits
			}
		}
		for i := range batch {
			unwrap(i)
		}
	}
	used := false
	for i, r := range results {
		if r.Err != nil {
			continue
		}
		c.overwriteLater(r.DataKey)
		if !used {
			wrappings[i].noteUse(0)
			used = true
		}
		wrappings[i].noteRead()
	}
	return results, nil
}

// guard converts a panic to the error of one key of a batch. It is deferred.
func (h *Handlers) guard(c *Call, err *error) {
	if cause := recover(); cause != nil {
		*err = h.Panicked(c.Operation.String(), cause)
	}
}

// findOfBatch returns the wrapping of one key of a batch.
func (h *Handlers) findOfBatch(c *Call, name string, given WrappedKey) (*wrapping, error) {
	policy := c.profile.DataKeys()
	if err := checkContext(c, name, policy, given.Field, given.Context); err != nil {
		return nil, err
	}
	return h.findWrapping(c, name, policy, given)
}
