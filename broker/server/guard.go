// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
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
		p, err := connOf(ctx).enter(name)
		if err != nil {
			return nil, err
		}
		defer func() {
			if cause := recover(); cause != nil {
				reply, err = nil, g.panicked(name.String(), cause)
			}
			if err != nil {
				p.end()
			}
		}()
		var in incoming
		if err := in.open(ctx, p, name, maxOtherSize, g.idleTime); err != nil {
			return nil, err
		}
		made, err := handle(server, ctx, func(v any) error {
			wire, err := in.only(ctx)
			if err != nil {
				return err
			}
			err = readOther(name, *wire, v)
			buffers.Put(wire)
			p.release()
			if err == nil && name == listProfiles {
				err = p.grant(ctx, name, maxPageMemory/2, in.patience)
			}
			return err
		}, nil)
		if err != nil {
			return nil, err
		}
		if err := p.encode(name, made.(proto.Message), nil); err != nil {
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
		opened, err := g.openStream(stream, name, maxOtherSize)
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
	wire, err := s.in.next(s.in.ctx)
	if err != nil {
		return err
	}
	defer s.in.done(wire)
	return readOther(s.in.what.(method), *wire, v)
}

// openedStream is a stream of any method, which may be as long as its client likes.
type openedStream struct {
	incoming
	ctx context.Context
}

// openStream takes what the limits have for a stream, until close.
func (s *Server) openStream(stream grpc.ServerStream, name fmt.Stringer, limit int) (*openedStream, error) {
	ctx := stream.Context()
	conn := connOf(ctx)
	if !conn.caller.takeStream() {
		return nil, conn.caller.tooMany(name, conn.caller.bounds.streams, "streams")
	}
	p, err := conn.enter(name)
	if err != nil {
		conn.caller.streams.Add(-1)
		return nil, err
	}
	opened := &openedStream{ctx: ctx}
	if err := opened.open(ctx, p, name, limit, s.idleTime); err != nil {
		opened.place = p
		opened.close()
		return nil, err
	}
	return opened, nil
}

func (o *openedStream) close() {
	from := o.place.conn.caller
	o.place.end()
	from.streams.Add(-1)
}
