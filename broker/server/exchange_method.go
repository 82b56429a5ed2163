// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
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
	run func(c *call, request []byte) (proto.Message, error)
}

// exchangeMethods are the operations by the number that their requests have in
// Call and their responses in Reply.
func (s *Server) exchangeMethods() map[protowire.Number]*exchangeMethod {
	return map[protowire.Number]*exchangeMethod{
		3: exchanged(engine.HashData, s.hashDataV1),
		4: exchanged(engine.SignCertificate, s.signCertificateV1),
		5: exchanged(engine.EncryptData, s.encryptDataV1),
		6: exchanged(engine.DecryptData, s.decryptDataV1),
		7: exchanged(engine.SignData, s.signDataV1),
		8: exchanged(engine.VerifyData, s.verifyDataV1),
	}
}

// exchanged describes an operation to Exchange as unary does to gRPC.
func exchanged[Request, Reply any, PRequest message[Request], PReply message[Reply]](
	op engine.Operation, adapt func(*call, PRequest) (PReply, error),
) *exchangeMethod {
	requestField := metadataField(PRequest(new(Request)))
	replyField := metadataField(PReply(new(Reply)))
	run := func(c *call, wire []byte, request PRequest) (proto.Message, error) {
		c.privateKey, wire = takePrivateKey(wire, request)
		defer clear(c.privateKey)
		if err := unmarshal(wire, request); err != nil {
			return nil, unreadable(op, request, err)
		}
		c.metadata = retag(c.metadata[:0], wire, requestField, replyField)
		if err := checkMetadataSize(op, c.metadata); err != nil {
			return nil, err
		}
		reply, err := adapt(c, request)
		if err != nil {
			return nil, err
		}
		identify(reply, replyField, c.metadata, c.warning)
		return reply, nil
	}
	requests := sync.Pool{New: func() any { return PRequest(new(Request)) }}
	return &exchangeMethod{op: op, quick: quickSize(op), run: func(c *call, wire []byte) (proto.Message, error) {
		request := requests.Get().(PRequest)
		reply, err := run(c, wire, request)
		proto.Reset(request)
		requests.Put(request)
		return reply, err
	}}
}
