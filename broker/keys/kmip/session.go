// SPDX-License-Identifier: Apache-2.0

package kmip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"

	"github.com/ovh/kmip-go"
	"github.com/ovh/kmip-go/payloads"
	"github.com/ovh/kmip-go/ttlv"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
)

// Session is a connection to a server. One request uses it at a time.
type Session struct {
	address string
	conn    net.Conn
	version kmip.ProtocolVersion
	// traits are the properties of the server.
	traits *traits
	// broken reports whether a part of a reply was not read.
	broken bool
}

// traits are properties of a server that its replies have shown.
type traits struct {
	// ignoresPlaceholder says that the server does not support the ID Placeholder (KMIP 1.4,
	// section 4): a request without an identifier is about the object that the request before it
	// in the same message has found.
	ignoresPlaceholder atomic.Bool
}

// versions are the supported protocol versions, the newest first.
var versions = []kmip.ProtocolVersion{kmip.V1_4, kmip.V1_3, kmip.V1_2, kmip.V1_1, kmip.V1_0}

// Dial connects to a server. It asks for the protocol version unless version is given. An
// error wraps [keys.ErrUnavailable], or [keys.ErrDenied] if either side does not accept the
// other's certificate.
func Dial(ctx context.Context, address string, client *tlsprovider.Client, version *kmip.ProtocolVersion) (*Session, error) {
	s := &Session{address: address, traits: new(traits)}
	conn, err := client.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, s.unreachable(ctx, err)
	}
	s.conn = conn
	if version != nil {
		s.version = *version
		return s, nil
	}
	if s.version, err = s.negotiate(ctx); err != nil {
		s.Close()
		return nil, s.unreachable(ctx, err)
	}
	return s, nil
}

// negotiate returns the newest version that both sides speak.
func (s *Session) negotiate(ctx context.Context) (kmip.ProtocolVersion, error) {
	// The request itself has version 1.1, because KMIP 1.0 does not have it.
	request := kmip.NewRequestMessage(kmip.V1_1, &payloads.DiscoverVersionsRequestPayload{ProtocolVersion: versions})
	message, err := exchange(ctx, s.conn, &request)
	if err != nil {
		return kmip.ProtocolVersion{}, err
	}
	if len(message.BatchItem) != 1 {
		return kmip.ProtocolVersion{}, fmt.Errorf("found %d replies to one request", len(message.BatchItem))
	}
	item := &message.BatchItem[0]
	if item.ResultStatus == kmip.ResultStatusOperationFailed && item.ResultReason == kmip.ResultReasonOperationNotSupported {
		return kmip.V1_0, nil
	}
	reply, err := replyOf[*payloads.DiscoverVersionsResponsePayload](s, "Discover Versions", item)
	if err != nil {
		return kmip.ProtocolVersion{}, err
	}
	for _, version := range versions {
		if slices.Contains(reply.ProtocolVersion, version) {
			return version, nil
		}
	}
	return kmip.ProtocolVersion{}, errors.New("found no common version, expected one of KMIP 1.0 to 1.4")
}

// unreachable returns the error for a server to which no connection could be made.
func (s *Session) unreachable(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: connect to %s: %w", keys.ErrUnavailable, s.address, ctx.Err())
	case tlsprovider.Refused(err):
		return fmt.Errorf("%w: connect to %s: %w", keys.ErrDenied, s.address, err)
	}
	return fmt.Errorf("%w: connect to %s: %w", keys.ErrUnavailable, s.address, err)
}

// Version returns the protocol version of the connection.
func (s *Session) Version() kmip.ProtocolVersion { return s.version }

// ServerVersion implements pool.Versioned.
func (s *Session) ServerVersion() string { return "KMIP " + s.version.String() }

// Broken implements pool.Fragile.
func (s *Session) Broken() bool { return s.broken }

// Close implements pool.Conn.
func (s *Session) Close() { _ = s.conn.Close() } // an error could not be handled

// Ping implements pool.Conn. It asks for the versions of the server, which needs no rights
// and no storage.
func (s *Session) Ping(ctx context.Context) error {
	_, err := s.Versions(ctx)
	return err
}

// Versions returns the protocol versions that the server supports, as text, the newest first.
func (s *Session) Versions(ctx context.Context) ([]string, error) {
	if s.Version() == kmip.V1_0 { // KMIP 1.0 has no Discover Versions
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
	items, err := s.batch(ctx, id, request)
	if err != nil {
		return reply, err
	}
	return replyOf[Reply](s, nameOf(request, id), &items[0])
}

// batch makes requests in one message and returns as many results. The server handles the
// requests in order, and continues after a failed one. If a server does not accept several
// requests in a message, batch sends them one after the other.
func (s *Session) batch(ctx context.Context, id string, requests ...kmip.OperationPayload) ([]kmip.ResponseBatchItem, error) {
	items, err := s.together(ctx, id, requests...)
	switch {
	case err != nil || items != nil:
		return items, err
	case len(requests) == 1:
		return nil, fmt.Errorf("%w: %s at %s: found no reply, or several, to one request", keys.ErrUnavailable, nameOf(requests[0], id), s.address)
	}
	results := make([]kmip.ResponseBatchItem, 0, len(requests))
	for _, request := range requests {
		result, err := s.batch(ctx, id, request)
		if err != nil {
			return nil, err
		}
		results = append(results, result...)
	}
	return results, nil
}

// together is batch for requests that must be in one message. It returns nothing if the server
// does not accept several requests in a message.
func (s *Session) together(ctx context.Context, id string, requests ...kmip.OperationPayload) ([]kmip.ResponseBatchItem, error) {
	message := kmip.NewRequestMessage(s.version, requests...)
	if len(requests) > 1 {
		inOrder := true
		message.Header.BatchOrderOption = &inOrder
		message.Header.BatchErrorContinuationOption = kmip.BatchErrorContinuationOptionContinue
	}
	reply, err := exchange(ctx, s.conn, &message)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("%w: %s at %s: %w", keys.ErrUnavailable, nameOf(requests[0], id), s.address, err)
	case len(reply.BatchItem) != len(requests):
		return nil, nil
	}
	return reply.BatchItem, nil
}

// replyOf returns the reply to a request, or the error with which the server refused it.
func replyOf[Reply kmip.OperationPayload](s *Session, name string, item *kmip.ResponseBatchItem) (reply Reply, err error) {
	if item.ResultStatus != kmip.ResultStatusSuccess {
		return reply, refused(name, s.address, item)
	}
	reply, ok := item.ResponsePayload.(Reply)
	if !ok {
		return reply, fmt.Errorf("%w: %s at %s: found a reply of another operation", keys.ErrUnavailable, name, s.address)
	}
	return reply, nil
}

// nameOf returns the name of a request for errors.
func nameOf(request kmip.OperationPayload, id string) string {
	name := ttlv.EnumStr(request.Operation())
	if id != "" {
		name += " " + id
	}
	return name
}

// Reasons of KMIP 2.0 (Result Reason Enumeration). Some servers use these reasons in older
// versions as well.
const (
	reasonObjectDestroyed kmip.ResultReason = 0x36
	reasonObjectNotFound  kmip.ResultReason = 0x37
)

// maxReason is the maximum size in bytes of a server's message in an error.
const maxReason = 200

// refused returns the error of a request that the server refused.
func refused(name, address string, item *kmip.ResponseBatchItem) error {
	number := fmt.Sprintf("%#x", uint32(item.ResultReason)) // for reasons without a name
	reason := fmt.Sprintf("%s at %s: %s: %q", name, address, cmp.Or(ttlv.EnumStr(item.ResultReason), number), item.ResultMessage[:min(maxReason, len(item.ResultMessage))])
	switch item.ResultReason {
	case kmip.ResultReasonItemNotFound, reasonObjectNotFound, reasonObjectDestroyed:
		return fmt.Errorf("%w: %s", keys.ErrNotFound, reason)
	case kmip.ResultReasonAuthenticationNotSuccessful, kmip.ResultReasonPermissionDenied,
		kmip.ResultReasonSensitive, kmip.ResultReasonNotExtractable:
		return fmt.Errorf("%w: %s", keys.ErrDenied, reason)
	}
	return fmt.Errorf("%w: %s", keys.ErrUnusable, reason)
}
