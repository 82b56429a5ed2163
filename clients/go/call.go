// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/mem"
)

// operation is one operation of the broker.
type operation struct {
	name   string
	method string
	// number is the number of the field with its request in Call, and with its response in
	// Reply. It is 0 if Exchange does not carry the operation.
	number number
	// metadata is the number of the field with the metadata in its replies.
	metadata number
}

func newOperation(name string, n, metadata number) *operation {
	return &operation{name, "/cryptobroker.v1.CryptoService/" + name, n, metadata}
}

// maxRequest is the size in bytes of the largest request that the client sends. Brokers refuse
// larger ones. Some brokers do so with the code of a broker that has too much to do, and the
// client would try again in vain.
const maxRequest = 4 << 20

// maxKept is the size in bytes of the largest reply whose buffer the next call uses again.
const maxKept = 32 << 10

// call is a call of an operation, with its request and its reply.
type call struct {
	op      *operation
	profile string
	trace   TraceContext
	// request is the encoded request.
	request *[]byte
	// shared is the request for a unary call of gRPC, nil before the first one.
	shared mem.Buffer
	// reply is the encoded reply. Its bytes are in kept or in received.
	reply    []byte
	kept     []byte
	received incoming
	reading  fields

	// The mutex of the stream guards the fields below until done has an element.
	id      uint64
	outcome failure
	// again reports whether the call has to be made again without the stream.
	again bool
	done  chan struct{}
}

var calls = sync.Pool{New: func() any { return &call{done: make(chan struct{}, 1)} }}

// begin returns a call whose request has the field profile. size is the size in bytes of the
// other fields. The goroutine that gets a call has to call end.
func (c *Client) begin(ctx context.Context, op *operation, profile string, size int) (*call, error) {
	profile = cmp.Or(profile, c.profile)
	if !c.enter() {
		return nil, errClosed(op, profile)
	}
	p := calls.Get().(*call)
	p.op, p.profile = op, profile
	if c.trace != nil {
		p.trace = c.trace(ctx)
	}
	// 256 bytes are enough for tags and lengths.
	p.request = buffers.Get(size + len(profile) + p.trace.size() + 256)
	*p.request = appendString((*p.request)[:0], requestProfile, profile)
	return p, nil
}

func errClosed(op *operation, profile string) *Error {
	return failure{code: CodeCanceled, message: said(op, profile, "the client was closed"), cause: ErrClosed}.error(op, profile)
}

// end frees a call.
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

// do makes the call. It tries again after transient failures.
func (c *Client) do(ctx context.Context, p *call) error {
	if size := len(*p.request); size > maxRequest {
		return failure{code: CodeInvalidArgument, message: said(p.op, p.profile, "the request has %d bytes, expected at most %d", size, maxRequest)}.error(p.op, p.profile)
	}
	ctx, cancel := c.limited(ctx)
	defer cancel()
	return c.repeat(ctx, p.op, p.profile, func(ctx context.Context) failure { return c.try(ctx, p) })
}

// try makes the call once.
func (c *Client) try(ctx context.Context, p *call) failure {
	if err := ctx.Err(); err != nil {
		return ended(p.op, p.profile, err)
	}
	if !c.unaryOnly && p.op.number != 0 && len(*p.request) <= maxExchanged {
		if result, served := c.exchange(ctx, p); served {
			return result
		}
	}
	return c.unary(ctx, p)
}

// limited returns a context with the timeout of the client.
func (c *Client) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.timeout > 0 {
		return context.WithTimeout(ctx, c.timeout)
	}
	return ctx, func() {}
}

// repeat tries until the result is not a transient failure, or until there is no time for another
// try.
func (c *Client) repeat(ctx context.Context, op *operation, profile string, try func(context.Context) failure) error {
	began := time.Now()
	result := try(ctx)
	for tries := 1; result.transient(); tries++ {
		wait := jittered(tries)
		if took := time.Since(began); took+wait > c.retryBudget {
			result = result.spent(tries, took)
			break
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			result = try(ctx)
		case <-c.done:
			result = failure{code: CodeCanceled, message: said(op, profile, "the client was closed; the last try: %s", result.message), cause: ErrClosed}
		case <-ctx.Done():
			last := result.message
			result = ended(op, profile, ctx.Err())
			result.message += "; the last try: " + last
		}
		timer.Stop()
	}
	if result.failed() {
		return result.error(op, profile)
	}
	return nil
}

// firstWait is the longest wait before the second try.
const firstWait = 10 * time.Millisecond

// jittered returns how long to wait after this many tries. It is a random time, so that many
// callers do not try again at the same moment. The longest time doubles with each try, up to
// maxWait.
func jittered(tries int) time.Duration {
	most := maxWait
	if tries < 8 {
		most = min(maxWait, firstWait<<(tries-1))
	}
	return rand.N(most) + 1
}

// ended returns the failure of a call whose context has ended.
func ended(op *operation, profile string, err error) failure {
	if errors.Is(err, context.DeadlineExceeded) {
		return failure{code: CodeDeadlineExceeded, message: said(op, profile, "there was no reply within the time for the call"), cause: err}
	}
	return failure{code: CodeCanceled, message: said(op, profile, "the call was canceled"), cause: err}
}

// read calls each with the fields of the reply, apart from its metadata. It returns the warning
// in the metadata.
func (c *Client) read(p *call, each func(f *fields) error) (warning *Deprecation, err error) {
	f := &p.reading
	*f = fields{wire: p.reply}
	for f.next() && err == nil {
		if f.number == p.op.metadata {
			warning, err = c.deprecation(f.bytes)
		} else {
			err = each(f)
		}
	}
	if err = cmp.Or(err, f.err); err != nil {
		return nil, p.unreadable(err)
	}
	return warning, nil
}

// unreadable returns the error of a call whose reply cannot be decoded.
func (p *call) unreadable(err error) error {
	return failure{code: CodeInternal, message: said(p.op, p.profile, "the reply cannot be read: %v", err), cause: err}.error(p.op, p.profile)
}

// missing returns the error of a call whose reply lacks a field.
func (p *call) missing(what string) error {
	return p.unreadable(fmt.Errorf("it has no %s", what))
}
