// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	gatewayv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/gateway/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/gateway"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

// Pod is the pod that makes a request.
type Pod struct {
	Namespace, Name, UID, ServiceAccount string
}

// ErrToken means that a token is not bound to a running pod, is not for the gateway, or came from
// another address. Its text is for the broker.
var ErrToken = errors.New("the token does not belong to a running pod, or is not for the key gateway")

// RefusedError means that a pod may not use a key for this operation.
type RefusedError struct {
	// Reason is a sentence for the broker.
	Reason string
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Reason }

// Use is the use of a key that a pod asks for.
type Use struct {
	Profile   string
	Operation profile.Operation
	KeyID     string
}

// Access authenticates and authorizes pods. It is safe for concurrent use. Errors other than the
// errors above mean that it cannot decide now.
type Access interface {
	// Authenticate returns the pod of a token that came from an address, or an error that
	// wraps [ErrToken].
	Authenticate(ctx context.Context, token string, from netip.Addr) (Pod, error)
	// Authorize returns nil if the pod may use the key, or a [*RefusedError].
	Authorize(ctx context.Context, pod Pod, use Use) error
}

// request is one request whose use of a key is allowed.
type request struct {
	operation profile.Operation
	key       *keys.Key
}

// serve has a task done with a key. It authenticates the pod, authorizes its use of the key, and finds the key. size is the size of
// the task's data in bytes. The error is a status.
func (s *Server) serve(ctx context.Context, use *gatewayv1.KeyUse, wanted profile.KeyTasks, size int, do func(*request) error) error {
	if size > gateway.MaxInputSize {
		return status.Errorf(codes.FailedPrecondition, "the request has %d bytes of data, expected at most %d", size, gateway.MaxInputSize)
	}
	pod, err := s.pod(ctx)
	if err != nil {
		return err
	}
	if !s.pods.enter(pod.UID) {
		return status.Errorf(codes.ResourceExhausted, "the pod has %d requests at one time, expected at most that many", maxRequestsOfPod)
	}
	defer s.pods.leave(pod.UID)
	operation, err := s.authorize(ctx, pod, use, wanted)
	if err != nil {
		return err
	}
	name := keys.Name{ID: use.GetKeyId(), Version: use.GetVersion(), Use: keys.Use{Profile: use.GetProfile(), Operation: operation}}
	key, err := s.keysOf(pod.Namespace).Key(ctx, name)
	if err == nil {
		err = do(&request{operation, key})
	}
	if err != nil {
		return s.failed(ctx, pod, use, err)
	}
	return nil
}

// pod returns the pod whose token the request has, and whose certificate the connection has if
// brokers need one.
func (s *Server) pod(ctx context.Context) (Pod, error) {
	header, _ := metadata.FromIncomingContext(ctx)
	values := header.Get(gateway.TokenHeader)
	if len(values) != 1 {
		return Pod{}, status.Errorf(codes.Unauthenticated, "the request has %d tokens, expected one", len(values))
	}
	token, ok := strings.CutPrefix(values[0], gateway.TokenScheme)
	if !ok || token == "" || len(token) > gateway.MaxTokenSize {
		return Pod{}, status.Errorf(codes.Unauthenticated, "the request has no token, expected %q and a token", gateway.TokenScheme)
	}
	from, err := netip.ParseAddr(addressOf(ctx))
	if err != nil {
		return Pod{}, s.unknown(ctx, "cannot find out the address of a request", err)
	}
	pod, err := s.access.Authenticate(ctx, token, from.Unmap().WithZone(""))
	switch {
	case errors.Is(err, ErrToken):
		s.log.LogAttrs(ctx, slog.LevelWarn, "refused a request because of its token", slog.String("address", addressOf(ctx)), slog.Any("error", err))
		return Pod{}, status.Error(codes.Unauthenticated, ErrToken.Error())
	case err != nil:
		return Pod{}, s.unknown(ctx, "cannot find out the pod of a token", err)
	}
	if s.certificates && !hasCertificateOf(ctx, pod) {
		s.log.LogAttrs(ctx, slog.LevelWarn, "refused a request because the certificate of its connection does not belong to the token's pod",
			slog.String("address", addressOf(ctx)), slog.String("namespace", pod.Namespace), slog.String("pod", pod.Name))
		return Pod{}, status.Error(codes.Unauthenticated, errCertificate.Error())
	}
	return pod, nil
}

// authorize returns the operation of a task that the pod may do.
func (s *Server) authorize(ctx context.Context, pod Pod, use *gatewayv1.KeyUse, wanted profile.KeyTasks) (profile.Operation, error) {
	operation, known := profile.FindOperation(use.GetOperation())
	provider, id := keys.SplitID(use.GetKeyId())
	var err error
	switch {
	case !known || operation.Row().KeyTasks == 0:
		err = &RefusedError{fmt.Sprintf("the operation %.32q has no keys at the key gateway", use.GetOperation())}
	case !operation.Row().KeyTasks.Has(wanted):
		err = &RefusedError{fmt.Sprintf("the operation %s does not need this use of the key", operation)}
	case provider == "" || id == "" || !keyrules.ValidID(use.GetKeyId()):
		err = &RefusedError{"the key has no provider, expected <provider>/<id>"}
	case len(use.GetVersion()) > maxVersionLength:
		err = &RefusedError{fmt.Sprintf("the version has %d bytes, expected at most %d", len(use.GetVersion()), maxVersionLength)}
	default:
		err = s.access.Authorize(ctx, pod, Use{Profile: use.GetProfile(), Operation: operation, KeyID: use.GetKeyId()})
	}
	var refused *RefusedError
	switch {
	case errors.As(err, &refused):
		s.log.LogAttrs(ctx, slog.LevelWarn, "refused the use of a key", append(attributes(pod, use), slog.String("reason", refused.Reason))...)
		return operation, status.Error(codes.PermissionDenied, refused.Reason)
	case err != nil:
		return operation, s.unknown(ctx, "cannot find out what a namespace may do", err, attributes(pod, use)...)
	}
	return operation, nil
}

// unknown returns the status for a request about which the gateway cannot decide.
func (s *Server) unknown(ctx context.Context, message string, err error, about ...slog.Attr) error {
	if ctx.Err() == nil {
		s.log.LogAttrs(ctx, slog.LevelError, message, append(about, slog.Any("error", err))...)
	}
	return status.Error(codes.Unavailable, "the key gateway cannot decide now whether the request is allowed")
}

// failed logs why a key or its provider failed an allowed request, and returns the status for the
// broker.
func (s *Server) failed(ctx context.Context, pod Pod, use *gatewayv1.KeyUse, err error) error {
	answer := gateway.Status(err)
	switch status.Code(answer) {
	case codes.Canceled, codes.InvalidArgument, codes.NotFound:
	default:
		s.log.LogAttrs(ctx, slog.LevelWarn, "a key cannot be used", append(attributes(pod, use), slog.Any("error", err))...)
	}
	return answer
}

// attributes identify the request of a line of the log. The broker chooses profile, operation and
// key, so these are cut.
func attributes(pod Pod, use *gatewayv1.KeyUse) []slog.Attr {
	return []slog.Attr{
		slog.String("namespace", pod.Namespace), slog.String("pod", pod.Name), slog.String("serviceAccount", pod.ServiceAccount),
		slog.String("profile", fmt.Sprintf("%.100s", use.GetProfile())), slog.String("operation", fmt.Sprintf("%.32s", use.GetOperation())),
		slog.String("key", fmt.Sprintf("%.100s", use.GetKeyId())),
	}
}
