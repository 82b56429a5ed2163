// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/rpc"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/wirev1"
)

// exchangeMethod serves the calls of one operation.
type exchangeMethod struct {
	op engine.Operation
	// quick is the largest request in bytes that is served before the next one is
	// looked at. Larger ones go to the workers.
	quick int
	// run serves a request. The reply may refer to the bytes of the request,
	// which belong to the call: keys in them are overwritten. It refers to the
	// metadata of the call, too.
	run func(c *handlers.Call, request []byte) (proto.Message, error)
}

// exchangeMethods are the operations by the number that their requests have in
// Call and their responses in Reply.
func (s *streamService) exchangeMethods() map[protowire.Number]*exchangeMethod {
	v1 := wirev1.Adapter{Service: s.Service}
	return map[protowire.Number]*exchangeMethod{
		3: exchanged(engine.HashData, v1.HashData),
		4: exchanged(engine.SignCertificate, v1.SignCertificate),
		5: exchanged(engine.EncryptData, v1.EncryptData),
		6: exchanged(engine.DecryptData, v1.DecryptData),
		7: exchanged(engine.SignData, v1.SignData),
		8: exchanged(engine.VerifyData, v1.VerifyData),
	}
}

// exchanged describes an operation to Exchange as unary does to gRPC.
func exchanged[Request, Reply any, PRequest requests.Message[Request], PReply requests.Message[Reply]](
	op engine.Operation, adapt func(*handlers.Call, PRequest) (PReply, error),
) *exchangeMethod {
	requestField := requests.MetadataField(PRequest(new(Request)))
	replyField := requests.MetadataField(PReply(new(Reply)))
	run := func(c *handlers.Call, wire []byte, request PRequest) (proto.Message, error) {
		c.PrivateKey, wire = requests.TakePrivateKey(wire, request)
		defer clear(c.PrivateKey)
		if err := requests.Unmarshal(wire, request); err != nil {
			return nil, requests.Unreadable(op, request, err)
		}
		c.Metadata = requests.Retag(c.Metadata[:0], wire, requestField, replyField)
		if err := requests.CheckMetadataSize(op, c.Metadata); err != nil {
			return nil, err
		}
		reply, err := adapt(c, request)
		if err != nil {
			return nil, err
		}
		requests.Identify(reply, replyField, c.Metadata, c.Warning)
		return reply, nil
	}
	requests := sync.Pool{New: func() any { return PRequest(new(Request)) }}
	return &exchangeMethod{op: op, quick: rpc.QuickSize(op), run: func(c *handlers.Call, wire []byte) (proto.Message, error) {
		request := requests.Get().(PRequest)
		reply, err := run(c, wire, request)
		proto.Reset(request)
		requests.Put(request)
		return reply, err
	}}
}
