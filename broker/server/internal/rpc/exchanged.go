// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
)

// ExchangedMethod serves the calls of an operation that streams of Exchange carry.
type ExchangedMethod struct {
	Operation profile.Operation
	// QuickSize is the size in bytes of the largest request that the reader of the stream
	// serves itself. Larger requests go to the workers.
	QuickSize int
	// Run serves a request. It does not change the bytes of the request. The reply may share
	// the memory of those bytes, and of the metadata of the call. The reply has its cached size,
	// and the call has that size.
	Run func(c *handlers.Call, request []byte) (proto.Message, error)
}

// Exchanged returns the method of Exchange that calls adapt, as [Unary] returns a method of
// gRPC.
func Exchanged[Request requests.Request[M, T], Reply proto.Message, M requests.Metadata[T], T requests.TraceContext](
	op profile.Operation, adapt func(*handlers.Call, Request) (Reply, error),
) *ExchangedMethod {
	var noRequest Request
	var noReply Reply
	requestField, replyField := requests.MetadataField(noRequest), requests.MetadataField(noReply)
	run := func(c *handlers.Call, wire []byte, request Request) (proto.Message, error) {
		c.PrivateKey, wire = requests.TakePrivateKey(wire, request)
		defer clear(c.PrivateKey)
		if err := requests.Unmarshal(wire, request); err != nil {
			return nil, requests.Unreadable(op, request, err)
		}
		c.Metadata = requests.Retag(c.Metadata[:0], wire, requestField, replyField)
		if err := requests.CheckMetadataSize(op, c.Metadata); err != nil {
			return nil, err
		}
		if err := requests.CheckMetadata[T](op, request.GetMetadata()); err != nil {
			return nil, err
		}
		reply, err := adapt(c, request)
		if err != nil {
			return nil, err
		}
		requests.Identify(reply, replyField, c.Metadata, c.Warning)
		c.ReplySize = proto.Size(reply)
		return reply, nil
	}
	pool := sync.Pool{New: func() any { return requests.New[Request]() }}
	return &ExchangedMethod{Operation: op, QuickSize: QuickSize(op), Run: func(c *handlers.Call, wire []byte) (proto.Message, error) {
		request := pool.Get().(Request)
		reply, err := run(c, wire, request)
		proto.Reset(request)
		pool.Put(request)
		return reply, err
	}}
}
