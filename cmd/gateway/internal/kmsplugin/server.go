// SPDX-License-Identifier: Apache-2.0

package kmsplugin

import (
	"context"
	"errors"
	"net"
	"path"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/crypto-broker/crypto-broker-operator/broker/defect"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/gateway"
)

// Limits of the socket. The API server has one connection for each entry of its configuration.
const (
	maxConnections = 32
	maxCalls       = 128
	// maxMessage is the size in bytes of the largest message: annotations may have 32 kB.
	maxMessage = 64 << 10
)

// NewServer returns a gRPC server with the plugin.
func NewServer(p *Plugin) *grpc.Server {
	server := grpc.NewServer(
		grpc.ForceServerCodecV2(codec{}),
		grpc.UnaryInterceptor(p.serve),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(maxCalls),
	)
	kmsapi.RegisterKeyManagementServiceServer(server, p)
	return server
}

// serve counts a call. It answers a call that panics, and logs no text of the panic, which could
// quote a key.
func (p *Plugin) serve(ctx context.Context, r any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (reply any, err error) {
	began := time.Now()
	defer func() {
		if recovered := recover(); recovered != nil {
			cause, stack := defect.Describe(recovered)
			p.options.Logger.ErrorContext(ctx, "a call failed because of a defect in the KMS plugin; other requests are not affected", "method", info.FullMethod, "cause", cause, "stack", stack)
			reply, err = nil, status.Error(codes.Internal, "failed because of a defect in the KMS plugin; its log has the details")
		}
		if p.options.Metrics != nil {
			p.options.Metrics.observe(path.Base(info.FullMethod), status.Code(err), time.Since(began))
		}
	}()
	return handle(ctx, r)
}

// codec overwrites keys of the API server, and messages with them, after use.
type codec struct{ gateway.Codec }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	encoded, err := c.Codec.Marshal(v)
	if response, ok := v.(*kmsapi.DecryptResponse); ok {
		clear(response.GetPlaintext())
	}
	return encoded, err
}

// Serve serves until ctx ends, which is no error. Calls that have begun may then end.
func Serve(ctx context.Context, server *grpc.Server, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() {
		late := time.AfterFunc(2*callTimeout, server.Stop)
		defer late.Stop()
		server.GracefulStop()
	})
	defer stop()
	if err := server.Serve(netutil.LimitListener(l, maxConnections)); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}
