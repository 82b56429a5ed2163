// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/buffers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/limits"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/served"
)

// Guard registers services whose handlers are written for gRPC alone. Their calls then have
// the same limits as all other calls.
type Guard struct {
	*Service
	server *grpc.Server
}

// NewGuard returns a guard that registers services with a server.
func NewGuard(s *Service, server *grpc.Server) Guard { return Guard{s, server} }

// RegisterService implements grpc.ServiceRegistrar.
func (g Guard) RegisterService(service *grpc.ServiceDesc, implementation any) {
	g.server.RegisterService(g.Guarded(service), implementation)
}

// GetServiceInfo implements reflection.ServiceInfoProvider.
func (g Guard) GetServiceInfo() map[string]grpc.ServiceInfo { return g.server.GetServiceInfo() }

// Guarded returns the service with methods that have the limits of all calls.
func (s *Service) Guarded(service *grpc.ServiceDesc) *grpc.ServiceDesc {
	guarded := *service
	guarded.Methods, guarded.Streams = nil, nil
	for _, m := range service.Methods {
		m.Handler = s.GuardMethod(requests.MethodName(m.MethodName), m.Handler)
		guarded.Methods = append(guarded.Methods, m)
	}
	for _, m := range service.Streams {
		m.Handler = s.guardStream(requests.MethodName(m.StreamName), m.Handler)
		guarded.Streams = append(guarded.Streams, m)
	}
	return &guarded
}

type methodHandler = func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error)

// GuardMethod returns a handler of a unary method that has the limits of all calls.
func (s *Service) GuardMethod(name requests.MethodName, handle methodHandler) methodHandler {
	return func(server any, ctx context.Context, _ func(any) error, _ grpc.UnaryServerInterceptor) (reply any, err error) {
		p, err := flow.ConnOf(ctx).Enter(name)
		if err != nil {
			return nil, err
		}
		defer func() {
			if cause := recover(); cause != nil {
				reply, err = nil, s.Panicked(name.String(), cause)
			}
			if err != nil {
				p.End()
			}
		}()
		var in flow.Incoming
		if err := in.Open(ctx, p, name, limits.MaxOtherSize, s.IdleTime); err != nil {
			return nil, err
		}
		made, err := handle(server, ctx, func(v any) error {
			wire, err := in.Only(ctx)
			if err != nil {
				return err
			}
			err = readOther(name, *wire, v)
			buffers.Pool.Put(wire)
			p.ReleaseMemory()
			if err == nil && name == served.ListProfilesMethod {
				err = p.TakeMemory(ctx, name, served.MaxPageMemory/2, in.MemoryWait)
			}
			return err
		}, nil)
		if err != nil {
			return nil, err
		}
		message := made.(proto.Message)
		if err := p.Encode(name, message, proto.Size(message), nil); err != nil {
			return nil, err
		}
		return p, nil
	}
}

// readOther decodes the request of a guarded method into v, which does not share the memory of
// wire afterwards.
func readOther(name requests.MethodName, wire []byte, v any) error {
	e, ours := v.(*requests.Envelope)
	if !ours {
		e = &requests.Envelope{Message: v.(proto.Message)}
	}
	if err := e.Read(wire); err != nil {
		return requests.Unreadable(name, e.Message, err)
	}
	return requests.CheckMetadataSize(name, e.Metadata)
}

// guardStream returns a handler of a streaming method that has the limits of all calls. Its
// streams end when the broker shuts down.
func (s *Service) guardStream(name requests.MethodName, handle grpc.StreamHandler) grpc.StreamHandler {
	return func(server any, stream grpc.ServerStream) (err error) {
		opened, err := s.OpenStream(stream, name, limits.MaxOtherSize)
		if err != nil {
			return err
		}
		defer opened.Close()
		defer func() {
			if cause := recover(); cause != nil {
				err = s.Panicked(name.String(), cause)
			}
		}()
		ctx, cancel := context.WithCancel(stream.Context())
		defer cancel()
		defer context.AfterFunc(s.Streams, cancel)()
		return handle(server, &guardedStream{ServerStream: stream, ctx: ctx, in: opened})
	}
}

// guardedStream is a stream that reads its messages as [flow.Incoming] does.
type guardedStream struct {
	grpc.ServerStream
	ctx context.Context
	in  *OpenedStream
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
	return readOther(s.in.What.(requests.MethodName), *wire, v)
}

// OpenedStream is a stream of any method. Its client decides how long it lasts.
type OpenedStream struct {
	flow.Incoming
	ctx context.Context
}

// OpenStream takes a stream and a slot of the share of the caller, until
// [OpenedStream.Close]. Messages may have at most limit bytes.
func (s *Service) OpenStream(stream grpc.ServerStream, name fmt.Stringer, limit int) (*OpenedStream, error) {
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
	opened := &OpenedStream{ctx: ctx}
	if err := opened.Open(ctx, p, name, limit, s.IdleTime); err != nil {
		opened.Slot = p
		opened.Close()
		return nil, err
	}
	return opened, nil
}

// Close releases the stream and the slot.
func (o *OpenedStream) Close() {
	from := o.Slot.Caller()
	o.Slot.End()
	from.LeaveStream()
}
