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
	turn     turn
	// input is that of the request where it came in parts.
	input input
	// metadata is that of the request as retag returned it, and profile the one
	// that was found: what a span tells.
	metadata []byte
	profile  *profile.Compiled
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
	calls := sync.Pool{New: func() any { return &unaryCall[Request]{} }}
	handle := func(ctx context.Context, decode func(any) error) (wire *unaryReply, err error) {
		started := time.Now()
		u := calls.Get().(*unaryCall[Request])
		c, e, request := &u.call, &u.envelope, PRequest(&u.request)
		c.op, c.ctx = op, ctx
		e.message, e.requestField, e.replyField = request, requestField, replyField
		held := int64(0)
		s.metrics.Begin()
		defer func() {
			cause := recover()
			if cause != nil {
				wire, err = nil, s.panicked(op.String(), cause)
			}
			if c.turn.next != nil {
				held = s.memory.received(&c.turn, e.size)
			}
			if err != nil {
				s.memory.Release(held)
			}
			s.metrics.End(op, c.counters, status.Code(err), time.Since(started))
			if s.tracer != nil {
				c.metadata = e.metadata
				s.trace(c, false, status.Code(err), started)
			}
			if cause == nil {
				e.free()
				proto.Reset(request)
				*c, *e = call{}, envelope{metadata: reusable(e.metadata), input: e.input.reuse()}
				calls.Put(u)
			}
		}()
		if err := s.memory.begin(c, &c.turn, started); err != nil {
			return nil, err
		}
		err = receive(op, e, decode)
		if held = s.memory.received(&c.turn, e.size); err != nil {
			return nil, err
		}
		c.input = e.input
		reply, err := adapt(c, request)
		if err != nil {
			return nil, err
		}
		metadata := e.metadata
		if warns && c.warning != nil {
			metadata = withWarning(metadata, replyField, c.warning)
		}
		return s.memory.encode(c.turn.conn, reply, metadata, held)
	}
	return grpc.MethodDesc{
		MethodName: name,
		// Interceptors are for the services of gRPC itself: what they do is in
		// handle, without their allocations.
		Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			reply, err := handle(ctx, decode)
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

// receive reads a request; what is the name that an error has.
func receive(what fmt.Stringer, e *envelope, decode func(any) error) error {
	if err := decode(e); err != nil {
		return err
	}
	if e.err != nil {
		return unreadable(what, e.message, e.err)
	}
	return checkMetadataSize(what, e.metadata)
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
