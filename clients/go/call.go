// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/mem"
)

// operation is one operation of cryptobroker.v1.CryptoService.
type operation struct {
	name   string
	method string
	// number is that of its request in Call and of its response in Reply.
	number number
}

func newOperation(name string, n number) *operation {
	return &operation{name, "/cryptobroker.v1.CryptoService/" + name, n}
}

// maxRequest is the size in bytes that a broker reads at most: what it answers to
// a larger one could not be told from a broker that has too much to do.
const maxRequest = 4 << 20

// maxKept is the size of the largest reply whose buffer is kept for the next one.
const maxKept = 32 << 10

// call is a request on its way.
type call struct {
	op      *operation
	profile string
	trace   TraceContext
	// request is the encoded request.
	request *[]byte
	// shared is the request as gRPC gets it, nil before the first call of gRPC.
	shared mem.Buffer
	// reply is the encoded reply. It is kept, or else in received.
	reply    []byte
	kept     []byte
	received incoming

	// The rest is for the stream, under its lock until done has an element.
	id      uint64
	outcome failure
	// again tells that the call is to be made without the stream.
	again bool
	done  chan struct{}
}

var calls = sync.Pool{New: func() any { return &call{done: make(chan struct{}, 1)} }}

// begin makes the call of a request; size is what its fields take, in bytes.
// Whoever gets a call ends it.
func (c *Client) begin(ctx context.Context, op *operation, profile string, size int) (*call, error) {
	if profile == "" {
		profile = c.profile
	}
	if !c.enter() {
		return nil, errClosed(op, profile)
	}
	p := calls.Get().(*call)
	p.op, p.profile = op, profile
	if c.trace != nil {
		p.trace = c.trace(ctx)
	}
	// Tags and lengths take what is added.
	p.request = buffers.Get(size + len(profile) + p.trace.size() + 256)
	*p.request = appendString((*p.request)[:0], requestProfile, profile)
	return p, nil
}

func errClosed(op *operation, profile string) *Error {
	return failure{code: CodeCanceled, message: said(op, profile, "the client was closed"), cause: ErrClosed}.error(op, profile)
}

// end lets go of a call.
func (c *Client) end(p *call) {
	if p.shared != nil {
		p.shared.Free()
	} else {
		buffers.Put(p.request)
	}
	p.received.free()
	clear(p.kept)
	if cap(p.kept) > maxKept {
		p.kept = nil
	}
	*p = call{kept: p.kept[:0], done: p.done}
	calls.Put(p)
	c.leave()
}

// do makes the call, and again while that may help.
func (c *Client) do(ctx context.Context, p *call) error {
	if size := len(*p.request); size > maxRequest {
		return failure{code: CodeInvalidArgument, message: said(p.op, p.profile, "the request has %d bytes, expected at most %d", size, maxRequest)}.error(p.op, p.profile)
	}
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	began := time.Now()
	result := c.try(ctx, p)
	if result.transient() {
		result = c.retry(ctx, p.op, p.profile, began, result, func() failure { return c.try(ctx, p) })
	}
	if result.failed() {
		return result.error(p.op, p.profile)
	}
	return nil
}

// try makes the call once.
func (c *Client) try(ctx context.Context, p *call) failure {
	if err := ctx.Err(); err != nil {
		return ended(p.op, p.profile, err)
	}
	if !c.unaryOnly && len(*p.request) <= maxExchanged {
		if result, served := c.exchange(ctx, p); served {
			return result
		}
	}
	return c.unary(ctx, p)
}

// retry waits and tries again, until there is a result that is no transient
// failure, or no time for another try.
func (c *Client) retry(ctx context.Context, op *operation, profile string, began time.Time, last failure, try func() failure) failure {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for tries := 1; ; tries++ {
		wait := jittered(tries)
		if took := time.Since(began); took+wait > c.retryBudget {
			return last.spent(tries, took)
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-c.done:
			return failure{code: CodeCanceled, message: said(op, profile, "the client was closed; the last try: %s", last.message), cause: ErrClosed}
		case <-ctx.Done():
			result := ended(op, profile, ctx.Err())
			result.message += "; the last try: " + last.message
			return result
		}
		result := try()
		if !result.transient() {
			return result
		}
		last = result
	}
}

// firstWait is the most that is waited before the second try.
const firstWait = 10 * time.Millisecond

// jittered is how long to wait after so many tries: anything up to twice as much
// each time, so that many callers do not come back at once.
func jittered(tries int) time.Duration {
	most := maxWait
	if tries < 8 {
		most = min(maxWait, firstWait<<(tries-1))
	}
	return rand.N(most) + 1
}

// ended is the failure of a call whose context ended.
func ended(op *operation, profile string, err error) failure {
	if errors.Is(err, context.DeadlineExceeded) {
		return failure{code: CodeDeadlineExceeded, message: said(op, profile, "there was no reply within the time for the call"), cause: err}
	}
	return failure{code: CodeCanceled, message: said(op, profile, "the call was canceled"), cause: err}
}

// unreadable is the error of a reply that is none.
func (p *call) unreadable(err error) error {
	return failure{code: CodeInternal, message: said(p.op, p.profile, "the reply cannot be read: %v", err), cause: err}.error(p.op, p.profile)
}

// missing is the error of a reply without what was asked for.
func (p *call) missing(what string) error {
	return p.unreadable(fmt.Errorf("it has no %s", what))
}
