// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"sync"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/buffers"
	"golang.org/x/sync/semaphore"
)

// Limits of transfers. The transfer of a message begins when its length is known, and ends when
// its reply is written. A caller may transfer transferPerProcessor bytes at one time for each
// processor, which is two messages with the largest input. More would not be faster, and other
// callers would wait while the processors read and write.
//
// A transfer counts for at most transferTime. A longer one does not keep the processors busy,
// because its client or its work is slow.
const (
	transferPerProcessor = 2 * buffers.LargeSize
	transferTime         = 50 * time.Millisecond
)

// transfer is the part of its caller's transfers that a message takes.
type transfer struct {
	timer *time.Timer
	end   func()
}

// newTransfers returns the transfers of a caller in a process with this many processors.
func newTransfers(processors int) (transfers *semaphore.Weighted, most int64) {
	most = transferPerProcessor * int64(processors)
	return semaphore.NewWeighted(most), most
}

// beginTransfer waits until the caller may transfer this many bytes. It returns the error of ctx
// if ctx ends before. Transfers count for at most transferTime, so it waits for at most that time
// for each maxTransfers bytes that already wait.
func (c *Caller) beginTransfer(ctx context.Context, bytes int64) (*transfer, error) {
	bytes = min(bytes, c.maxTransfers)
	if err := c.transfers.Acquire(ctx, bytes); err != nil {
		return nil, err
	}
	t := &transfer{end: sync.OnceFunc(func() { c.transfers.Release(bytes) })}
	t.timer = time.AfterFunc(transferTime, t.end)
	return t, nil
}

// done ends the transfer, unless transferTime has ended it. It does nothing for a nil transfer.
func (t *transfer) done() {
	if t != nil {
		t.timer.Stop()
		t.end()
	}
}
