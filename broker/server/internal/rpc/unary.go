// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/buffers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/limits"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
)

// unaryCall is the memory of one request. The next request uses it again.
type unaryCall[Request proto.Message] struct {
	handlers.Call
	requests.Envelope
	flow.Incoming
	request Request
}

// Unary returns the description of a method of the wire contract. The method calls adapt
// with the request, after it has checked the metadata, and sends the reply with the metadata
// of the request. Both messages have a field named metadata.
func Unary[Request requests.Request[M, T], Reply proto.Message, M requests.Metadata[T], T requests.TraceContext](
	s *Service, name string, op profile.Operation, adapt func(*handlers.Call, Request) (Reply, error),
) grpc.MethodDesc {
	var noRequest Request
	var noReply Reply
	requestField, replyField := requests.MetadataField(noRequest), requests.MetadataField(noReply)
	warns := requests.HasWarning(noReply)
	quick := QuickSize(op)
	calls := sync.Pool{New: func() any { return &unaryCall[Request]{request: requests.New[Request]()} }}
	// serve decodes a request and writes its reply to the slot of the call.
	serve := func(u *unaryCall[Request], wire []byte) (err error) {
		defer func() {
			if cause := recover(); cause != nil {
				err = s.Panicked(op.String(), cause)
			}
		}()
		c, e := &u.Call, &u.Envelope
		defer func() {
			clear(e.PrivateKey)
			c.Overwrite()
		}()
		if err := e.Read(wire); err != nil {
			return requests.Unreadable(op, e.Message, err)
		}
		c.Metadata, c.PrivateKey = e.Metadata, e.PrivateKey
		if err := requests.CheckMetadataSize(op, e.Metadata); err != nil {
			return err
		}
		if err := requests.CheckMetadata[T](op, u.request.GetMetadata()); err != nil {
			return err
		}
		reply, err := adapt(c, u.request)
		if err != nil {
			return err
		}
		metadata := e.Metadata
		if warns && c.Warning != nil {
			metadata = requests.WithWarning(metadata, replyField, c.Warning)
		}
		c.ReplySize = proto.Size(reply)
		return u.Slot.Encode(op, reply, c.ReplySize, metadata)
	}
	handle := func(ctx context.Context) (_ *flow.Slot, err error) {
		started := time.Now()
		s.Metrics.Begin()
		u := calls.Get().(*unaryCall[Request])
		c := &u.Call
		c.Operation, c.Context = op, ctx
		u.Message, u.RequestField, u.ReplyField = u.request, requestField, replyField
		var p *flow.Slot
		defer func() {
			err = s.Record(c, err)
			if err != nil && p != nil {
				p.End()
			}
			s.Ended(c, status.Code(err), started, time.Now())
			proto.Reset(u.request)
			u.Call, u.Incoming = handlers.Call{}, flow.Incoming{}
			u.Envelope = requests.Envelope{Metadata: requests.Reusable(u.Envelope.Metadata)}
			calls.Put(u)
		}()
		conn := flow.ConnOf(ctx)
		if p, err = conn.Enter(op); err != nil {
			return nil, err
		}
		if err = u.Open(ctx, p, op, limits.MaxRequestSize, s.IdleTime); err != nil {
			return nil, err
		}
		wire, err := u.Only(ctx)
		if err != nil {
			return nil, err
		}
		defer buffers.Pool.Put(wire)
		c.RequestSize = len(*wire)
		if len(*wire) <= quick {
			s.Workers.NoteQuickCall(conn.Caller.Calls(), started)
			c.MayWait = true
			err = serve(u, *wire)
		} else {
			s.Workers.Run(&conn.Jobs, func() {
				if err = ctx.Err(); err != nil {
					err = status.FromContextError(err).Err()
					return
				}
				err = serve(u, *wire)
			})
			if errors.Is(err, handlers.ErrWaits) { // a worker must not wait, but this goroutine may
				proto.Reset(u.request)
				c.MayWait = true
				err = serve(u, *wire)
			}
		}
		if err != nil {
			return nil, err
		}
		return p, nil
	}
	return grpc.MethodDesc{
		MethodName: name,
		// The broker reads messages by itself, see [flow.Incoming].
		Handler: func(_ any, ctx context.Context, _ func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			reply, err := handle(ctx)
			if err != nil {
				return nil, calledAs(err, op, name)
			}
			return reply, nil
		},
	}
}

// calledAs adds the name of the method to an error if that name differs from the name of
// the operation: "HashData (called as Hash): …". Developers know the name of the method, and
// authors of profiles know the name of the operation.
func calledAs(err error, op profile.Operation, name string) error {
	s := status.Convert(err)
	rest, ours := strings.CutPrefix(s.Message(), op.String())
	if name == op.String() || !ours {
		return err
	}
	return status.Errorf(s.Code(), "%s (called as %s)%s", op, name, rest)
}

// QuickSize returns the size in bytes of the largest quick request of an operation. The
// goroutine that receives a quick request serves it; larger requests go to the workers. A
// request of that size takes some ten microseconds with the slowest digest. Keys by id take
// no time to load, because they are in memory.
func QuickSize(op profile.Operation) int {
	if op.Row().Quick {
		return 16 << 10
	}
	return 0
}
