// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
)

// call is one request, whatever its generation.
type call struct {
	op  engine.Operation
	ctx context.Context
	// deadline is when the call has to end beside that of ctx, zero where it need
	// not.
	deadline time.Time
	// counters is set once the profile is known, and warning where that is
	// deprecated.
	counters *telemetry.Counters
	warning  []byte
	// metadata is that of the request as retag returned it, and profile the one
	// that was found: what a span tells.
	metadata []byte
	profile  *profile.Compiled
	// privateKey is the issuer's, where a request for a certificate has one.
	privateKey []byte
}

// message is a pointer to T that is a protobuf message.
type message[T any] interface {
	*T
	proto.Message
}

// unaryCall is what one request takes. It is used again for the next one.
type unaryCall[Request any] struct {
	call
	envelope
	flow.Incoming
	request Request
}

// maxReused is the size in bytes of the largest metadata whose memory is kept for
// the next request.
const maxReused = 1 << 10

func reusable(metadata []byte) []byte {
	if cap(metadata) > maxReused {
		return nil
	}
	return metadata[:0]
}

// unary describes a method of the wire contract to gRPC: adapt is called with
// the decoded request, its reply goes out with the request's metadata. Both
// messages have a field named metadata.
func unary[Request, Reply any, PRequest message[Request], PReply message[Reply]](
	s *Server, name string, op engine.Operation, adapt func(*call, PRequest) (PReply, error),
) grpc.MethodDesc {
	requestField := metadataField(PRequest(new(Request)))
	replyField := metadataField(PReply(new(Reply)))
	warns := hasWarning(PReply(new(Reply)))
	quick := quickSize(op)
	calls := sync.Pool{New: func() any { return &unaryCall[Request]{} }}
	// serve reads a request and writes its reply to the slot of the call.
	serve := func(u *unaryCall[Request], wire []byte) (err error) {
		defer func() {
			if cause := recover(); cause != nil {
				err = s.panicked(op.String(), cause)
			}
		}()
		c, e := &u.call, &u.envelope
		defer func() { clear(e.privateKey) }()
		if err := e.read(wire); err != nil {
			return unreadable(op, e.message, err)
		}
		c.metadata, c.privateKey = e.metadata, e.privateKey
		if err := checkMetadataSize(op, e.metadata); err != nil {
			return err
		}
		reply, err := adapt(c, PRequest(&u.request))
		if err != nil {
			return err
		}
		metadata := e.metadata
		if warns && c.warning != nil {
			metadata = withWarning(metadata, replyField, c.warning)
		}
		return u.Slot.Encode(op, reply, metadata)
	}
	handle := func(ctx context.Context) (_ *flow.Slot, err error) {
		started := time.Now()
		s.metrics.Begin()
		u := calls.Get().(*unaryCall[Request])
		c := &u.call
		c.op, c.ctx = op, ctx
		u.message, u.requestField, u.replyField = PRequest(&u.request), requestField, replyField
		var p *flow.Slot
		defer func() {
			if err != nil && p != nil {
				p.End()
			}
			s.metrics.End(op, c.counters, status.Code(err), time.Since(started))
			if s.tracer != nil {
				s.trace(c, false, status.Code(err), started)
			}
			proto.Reset(PRequest(&u.request))
			u.call, u.Incoming = call{}, flow.Incoming{}
			u.envelope = envelope{metadata: reusable(u.envelope.metadata)}
			calls.Put(u)
		}()
		conn := flow.ConnOf(ctx)
		if p, err = conn.Enter(op); err != nil {
			return nil, err
		}
		if err = u.Open(ctx, p, op, flow.MaxRequestSize, s.idleTime); err != nil {
			return nil, err
		}
		wire, err := u.Only(ctx)
		if err != nil {
			return nil, err
		}
		defer flow.Buffers.Put(wire)
		if len(*wire) <= quick {
			s.workers.NoteQuickCall(conn.Caller.Calls(), started)
			err = serve(u, *wire)
		} else {
			s.workers.Run(&conn.Jobs, func() {
				if err = ctx.Err(); err != nil {
					err = status.FromContextError(err).Err()
					return
				}
				err = serve(u, *wire)
			})
		}
		if err != nil {
			return nil, err
		}
		return p, nil
	}
	return grpc.MethodDesc{
		MethodName: name,
		// Messages are read by the broker itself, see incoming.
		Handler: func(_ any, ctx context.Context, _ func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			reply, err := handle(ctx)
			if err != nil {
				return nil, calledAs(err, op, name)
			}
			return reply, nil
		},
	}
}

// calledAs puts the name of the method into an error of a call by another name
// than the operation has in profiles and documents: "HashData (called as Hash):
// …". Who reads it knows the one, who wrote the profile the other.
func calledAs(err error, op engine.Operation, name string) error {
	s := status.Convert(err)
	rest, ours := strings.CutPrefix(s.Message(), op.String())
	if name == op.String() || !ours {
		return err
	}
	return status.Errorf(s.Code(), "%s (called as %s)%s", op, name, rest)
}

func metadataField(m proto.Message) protowire.Number {
	descriptor := m.ProtoReflect().Descriptor()
	field := descriptor.Fields().ByName("metadata")
	if field == nil {
		panic(fmt.Sprintf("server: %s has no field metadata", descriptor.FullName()))
	}
	return field.Number()
}

// panicked keeps a defect from ending the broker. The log has the stack but not
// the cause, unless Go itself wrote that: anything else might quote an input.
func (s *Server) panicked(what string, cause any) error {
	text := fmt.Sprintf("%T", cause)
	if err, ok := cause.(runtime.Error); ok {
		text = err.Error()
	}
	s.logger.LogAttrs(context.Background(), slog.LevelError, "a request failed because of a defect in the broker; the others are not affected",
		slog.String("operation", what), slog.String("cause", text), slog.String("stack", string(debug.Stack())))
	return status.Errorf(codes.Internal, "%s: failed because of a defect in the broker, whose log has the details", what)
}
