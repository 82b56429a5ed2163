// SPDX-License-Identifier: Apache-2.0

package kmip

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/ovh/kmip-go"
	"github.com/ovh/kmip-go/kmipclient"
	"github.com/ovh/kmip-go/payloads"
	"github.com/ovh/kmip-go/ttlv"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// maxMessage is the largest reply in bytes that is read.
const maxMessage = 1 << 20

// Session is a connection to a server. One request uses it at a time.
type Session struct {
	address string
	raw     net.Conn
	client  *kmipclient.Client
}

// errOneConnection is the error of a second connection of a client. The client's library
// connects again and repeats a request by itself, and a request that creates a key must not
// be repeated.
var errOneConnection = errors.New("the server closed the connection")

// Dial connects to a server. It asks for the protocol version unless version is given. An
// error wraps [keys.ErrUnavailable], or [keys.ErrDenied] if either side does not accept the
// other's certificate.
func Dial(ctx context.Context, address string, config *tls.Config, version *kmip.ProtocolVersion) (*Session, error) {
	s := &Session{address: address}
	options := []kmipclient.Option{
		kmipclient.WithMaxMessageSize(maxMessage),
		kmipclient.WithDialerUnsafe(func(ctx context.Context) (net.Conn, error) {
			if s.raw != nil {
				return nil, errOneConnection
			}
			dialer := tls.Dialer{Config: config}
			conn, err := dialer.DialContext(ctx, "tcp", address)
			if err == nil {
				s.raw = conn
			}
			return conn, err
		}),
	}
	if version != nil {
		options = append(options, kmipclient.EnforceVersion(*version))
	}
	client, err := kmipclient.DialContext(ctx, address, options...)
	if err != nil {
		if s.raw != nil {
			_ = s.raw.Close() // it is not used any more
		}
		return nil, s.unreachable(ctx, err)
	}
	s.client = client
	return s, nil
}

// unreachable returns the error of a server that could not be connected to.
func (s *Session) unreachable(ctx context.Context, err error) error {
	var certificate *tls.CertificateVerificationError
	var alert tls.AlertError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: connect to %s: %w", keys.ErrUnavailable, s.address, ctx.Err())
	case errors.As(err, &certificate), errors.As(err, &alert):
		return fmt.Errorf("%w: connect to %s: %w", keys.ErrDenied, s.address, err)
	}
	return fmt.Errorf("%w: connect to %s: %w", keys.ErrUnavailable, s.address, err)
}

// Version returns the protocol version of the connection.
func (s *Session) Version() kmip.ProtocolVersion { return s.client.Version() }

// Close implements pool.Conn.
func (s *Session) Close() { _ = s.raw.Close() } // the library's goroutines end with it

// Ping implements pool.Conn. It asks for the versions of the server, which needs no rights
// and no storage.
func (s *Session) Ping(ctx context.Context) error {
	_, err := s.Versions(ctx)
	return err
}

// Versions returns the protocol versions that the server supports, as text, the newest first.
func (s *Session) Versions(ctx context.Context) ([]string, error) {
	if s.Version() == kmip.V1_0 { // which has no Discover Versions
		if _, err := call[*payloads.QueryResponsePayload](ctx, s, "", &payloads.QueryRequestPayload{QueryFunction: []kmip.QueryFunction{kmip.QueryFunctionOperations}}); err != nil {
			return nil, err
		}
		return []string{kmip.V1_0.String()}, nil
	}
	reply, err := call[*payloads.DiscoverVersionsResponsePayload](ctx, s, "", &payloads.DiscoverVersionsRequestPayload{})
	if err != nil {
		return nil, err
	}
	var all []string
	for _, version := range reply.ProtocolVersion {
		all = append(all, version.String())
	}
	return all, nil
}

// call makes a request and returns its reply. id is the identifier of the key that the
// request is about, for errors.
func call[Reply kmip.OperationPayload](ctx context.Context, s *Session, id string, request kmip.OperationPayload) (reply Reply, err error) {
	name := ttlv.EnumStr(request.Operation())
	if id != "" {
		name += " " + id
	}
	items, err := s.client.Batch(ctx, request)
	if err != nil {
		if ctx.Err() != nil {
			return reply, ctx.Err()
		}
		return reply, fmt.Errorf("%w: %s at %s: %w", keys.ErrUnavailable, name, s.address, err)
	}
	item := items[0] // there are as many as requests
	if item.ResultStatus != kmip.ResultStatusSuccess {
		return reply, refused(name, s.address, &item)
	}
	reply, ok := item.ResponsePayload.(Reply)
	if !ok {
		return reply, fmt.Errorf("%w: %s at %s: found a reply of another operation", keys.ErrUnavailable, name, s.address)
	}
	return reply, nil
}

// refused returns the error of a request that the server refused.
func refused(name, address string, item *kmip.ResponseBatchItem) error {
	reason := fmt.Sprintf("%s at %s: %s: %s", name, address, ttlv.EnumStr(item.ResultReason), item.ResultMessage)
	switch item.ResultReason {
	case kmip.ResultReasonItemNotFound:
		return fmt.Errorf("%w: %s", keys.ErrNotFound, reason)
	case kmip.ResultReasonAuthenticationNotSuccessful, kmip.ResultReasonPermissionDenied,
		kmip.ResultReasonSensitive, kmip.ResultReasonNotExtractable:
		return fmt.Errorf("%w: %s", keys.ErrDenied, reason)
	}
	return fmt.Errorf("%w: %s", keys.ErrUnusable, reason)
}
