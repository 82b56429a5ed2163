// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/messages"
)

// A message is transferred from when its length is known until its reply is written. A caller
// may transfer transferPerProcessor bytes at one time for each processor, which is two
// messages with the largest input. More would not be quicker, and the processors would have
// so much to read and to write that other callers wait.
//
// A transfer that takes transferTime counts no more. It does not keep the processors busy:
// its client is slow, or its work is.
const (
	transferPerProcessor = 2 * messages.LargeBuffer
	transferTime         = 50 * time.Millisecond
)

// transfer is what a message takes of the bytes that its caller may transfer.
type transfer struct {
	timer *time.Timer
	end   func()
}

// newTransfers returns what a caller may transfer, if the process has this many processors.
func newTransfers(processors int) (transfers *semaphore.Weighted, most int64) {
	most = transferPerProcessor * int64(processors)
	return semaphore.NewWeighted(most), most
}

// beginTransfer waits until the caller may transfer this many bytes. It returns the error of
// ctx if ctx ends before. What has begun before counts for transferTime at most, so it waits
// for that time for each maxTransfers bytes that wait already.
func (c *Caller) beginTransfer(ctx context.Context, bytes int64) (*transfer, error) {
	bytes = min(bytes, c.maxTransfers)
	if err := c.transfers.Acquire(ctx, bytes); err != nil {
		return nil, err
	}
	t := &transfer{end: sync.OnceFunc(func() { c.transfers.Release(bytes) })}
	t.timer = time.AfterFunc(transferTime, t.end)
	return t, nil
}

// done ends the transfer, unless it counts no more. A nil transfer does nothing.
func (t *transfer) done() {
	if t != nil {
		t.timer.Stop()
		t.end()
	}
}
