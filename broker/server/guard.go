// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
)

// guard registers services whose handlers are written for gRPC alone, so that their
// calls have the limits that all calls have.
type guard struct{ *Server }

// RegisterService implements grpc.ServiceRegistrar.
func (g guard) RegisterService(service *grpc.ServiceDesc, implementation any) {
	guarded := *service
	guarded.Methods, guarded.Streams = nil, nil
	for _, m := range service.Methods {
		m.Handler = g.method(method(m.MethodName), m.Handler)
		guarded.Methods = append(guarded.Methods, m)
	}
	for _, m := range service.Streams {
		m.Handler = g.stream(method(m.StreamName), m.Handler)
		guarded.Streams = append(guarded.Streams, m)
	}
	g.grpc.RegisterService(&guarded, implementation)
}

// GetServiceInfo implements reflection.ServiceInfoProvider.
func (g guard) GetServiceInfo() map[string]grpc.ServiceInfo { return g.grpc.GetServiceInfo() }

type methodHandler = func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error)

// method guards a unary method.
func (g guard) method(name method, handle methodHandler) methodHandler {
	return func(server any, ctx context.Context, _ func(any) error, _ grpc.UnaryServerInterceptor) (reply any, err error) {
		p, err := flow.ConnOf(ctx).Enter(name)
		if err != nil {
			return nil, err
		}
		defer func() {
			if cause := recover(); cause != nil {
				reply, err = nil, g.panicked(name.String(), cause)
			}
			if err != nil {
				p.End()
			}
		}()
		var in flow.Incoming
		if err := in.Open(ctx, p, name, flow.MaxOtherSize, g.idleTime); err != nil {
			return nil, err
		}
		made, err := handle(server, ctx, func(v any) error {
			wire, err := in.Only(ctx)
			if err != nil {
				return err
			}
			err = readOther(name, *wire, v)
			flow.Buffers.Put(wire)
			p.ReleaseMemory()
			if err == nil && name == listProfiles {
				err = p.TakeMemory(ctx, name, maxPageMemory/2, in.MemoryWait)
			}
			return err
		}, nil)
		if err != nil {
			return nil, err
		}
		if err := p.Encode(name, made.(proto.Message), nil); err != nil {
			return nil, err
		}
		return p, nil
	}
}

// readOther reads the request of a guarded method. What methods of the broker's own
// keep of it is their message's, not the wire's.
func readOther(name method, wire []byte, v any) error {
	e, ours := v.(*envelope)
	if !ours {
		e = &envelope{message: v.(proto.Message)}
	}
	if err := e.read(wire); err != nil {
		return unreadable(name, e.message, err)
	}
	return checkMetadataSize(name, e.metadata)
}

// stream guards a method with streams, whose calls end when the broker shuts down.
func (g guard) stream(name method, handle grpc.StreamHandler) grpc.StreamHandler {
	return func(server any, stream grpc.ServerStream) (err error) {
		opened, err := g.openStream(stream, name, flow.MaxOtherSize)
		if err != nil {
			return err
		}
		defer opened.close()
		defer func() {
			if cause := recover(); cause != nil {
				err = g.panicked(name.String(), cause)
			}
		}()
		ctx, cancel := context.WithCancel(stream.Context())
		defer cancel()
		defer context.AfterFunc(g.streams, cancel)()
		return handle(server, &guardedStream{ServerStream: stream, ctx: ctx, in: opened})
	}
}

type guardedStream struct {
	grpc.ServerStream
	ctx context.Context
	in  *openedStream
}

// Context implements grpc.ServerStream.
func (s *guardedStream) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream.
func (s *guardedStream) RecvMsg(v any) error {
	wire, err := s.in.Next(s.in.ctx)
	if err != nil {
		return err
	}
	defer s.in.Done(wire)
	return readOther(s.in.What.(method), *wire, v)
}

// openedStream is a stream of any method, which may be as long as its client likes.
type openedStream struct {
	flow.Incoming
	ctx context.Context
}

// openStream takes what the limits have for a stream, until close.
func (s *Server) openStream(stream grpc.ServerStream, name fmt.Stringer, limit int) (*openedStream, error) {
	ctx := stream.Context()
	conn := flow.ConnOf(ctx)
	if err := conn.Caller.EnterStream(name); err != nil {
		return nil, err
	}
	p, err := conn.Enter(name)
	if err != nil {
		conn.Caller.LeaveStream()
		return nil, err
	}
	opened := &openedStream{ctx: ctx}
	if err := opened.Open(ctx, p, name, limit, s.idleTime); err != nil {
		opened.Slot = p
		opened.close()
		return nil, err
	}
	return opened, nil
}

func (o *openedStream) close() {
	from := o.Slot.Caller()
	o.Slot.End()
	from.LeaveStream()
}
