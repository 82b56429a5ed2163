// SPDX-License-Identifier: Apache-2.0

package kmip

import (
	"cmp"
	"crypto"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ovh/kmip-go"
	"github.com/ovh/kmip-go/payloads"
	"github.com/ovh/kmip-go/ttlv"
)

// memory is a server that answers Locate, Get Attributes, Get and Sign.
type memory struct {
	objects []*stored // the newest last
	// placeholder is the object that the server uses for requests without an identifier. "found" means the object that Locate found
	// in the same message, as in the standard. Any other text is the identifier of an object.
	placeholder string
	// reason is the reason with which the server refuses a request about a missing object. The default is Item Not Found.
	reason kmip.ResultReason
	// alone reports whether the server refuses messages with several requests.
	alone bool
	// folds reports whether the server ignores the case of identifiers.
	folds bool
	// hidden is the identifier of an object that only Locate finds, or empty.
	hidden string
	// change changes the bytes of replies.
	change func([]byte) []byte

	// seen receives the requests.
	seen func(*kmip.RequestMessage)

	// closed reports whether the server closes the connection after a reply. It may be nil.
	closed func() bool

	// private signs, whatever object is asked for. It may be nil: then the server does not sign.
	private crypto.Signer

	// messages counts messages, and gets has the objects that the server has sent.
	messages int
	gets     []string
}

type stored struct {
	id, name string
	kind     kmip.ObjectType
	state    kmip.State
	since    time.Time
	material []byte
}

// session returns a connection to the server.
func (m *memory) session(t testing.TB) *Session {
	t.Helper()
	ours, theirs := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { _ = theirs.Close() }()
		for m.serve(theirs) == nil {
		}
	}()
	t.Cleanup(func() {
		_ = ours.Close()
		<-ended
	})
	return &Session{address: "memory", conn: ours, version: kmip.V1_4, traits: new(traits)}
}

// serve answers one message.
func (m *memory) serve(conn net.Conn) error {
	message := make([]byte, headerSize)
	if _, err := io.ReadFull(conn, message); err != nil {
		return err
	}
	message = append(message, make([]byte, binary.BigEndian.Uint32(message[4:]))...)
	if _, err := io.ReadFull(conn, message[headerSize:]); err != nil {
		return err
	}
	var request kmip.RequestMessage
	if err := ttlv.UnmarshalTTLV(message, &request); err != nil {
		return err
	}
	m.messages++
	if m.seen != nil {
		m.seen(&request)
	}
	reply := ttlv.MarshalTTLV(m.reply(&request))
	if m.change != nil {
		reply = m.change(reply)
	}
	if _, err := conn.Write(reply); err != nil {
		return err
	}
	if m.closed != nil && m.closed() {
		return io.EOF
	}
	return nil
}

func (m *memory) reply(request *kmip.RequestMessage) *kmip.ResponseMessage {
	reply := &kmip.ResponseMessage{Header: kmip.ResponseHeader{ProtocolVersion: request.Header.ProtocolVersion}}
	if m.alone && len(request.BatchItem) > 1 {
		reply.BatchItem = []kmip.ResponseBatchItem{{ResultStatus: kmip.ResultStatusOperationFailed, ResultReason: kmip.ResultReasonFeatureNotSupported}}
	} else {
		placeholder := m.placeholder
		for _, item := range request.BatchItem {
			payload := m.answer(item.RequestPayload, &placeholder)
			result := kmip.ResponseBatchItem{Operation: item.Operation, UniqueBatchItemID: item.UniqueBatchItemID, ResponsePayload: payload}
			if payload == nil {
				result.ResultStatus, result.ResultReason = kmip.ResultStatusOperationFailed, cmp.Or(m.reason, kmip.ResultReasonItemNotFound)
			}
			reply.BatchItem = append(reply.BatchItem, result)
		}
	}
	reply.Header.BatchCount = int32(len(reply.BatchItem)) //nolint:gosec // a few
	return reply
}

// answer returns nil if there is no such object.
func (m *memory) answer(request kmip.OperationPayload, placeholder *string) kmip.OperationPayload {
	find := func(id string) *stored {
		if id == "" {
			id = *placeholder
		}
		for _, o := range m.objects {
			if (o.id == id || m.folds && strings.EqualFold(o.id, id)) && o.id != m.hidden {
				return o
			}
		}
		return nil
	}
	switch request := request.(type) {
	case *payloads.LocateRequestPayload:
		reply := &payloads.LocateResponsePayload{}
		for i := len(m.objects) - 1; i >= 0; i-- {
			if m.objects[i].matches(request.Attribute) {
				reply.UniqueIdentifier = append(reply.UniqueIdentifier, m.objects[i].id)
			}
		}
		if m.placeholder == "found" {
			if *placeholder = ""; len(reply.UniqueIdentifier) == 1 {
				*placeholder = reply.UniqueIdentifier[0]
			}
		}
		return reply
	case *payloads.GetAttributesRequestPayload:
		if o := find(request.UniqueIdentifier); o != nil {
			return &payloads.GetAttributesResponsePayload{UniqueIdentifier: o.id, Attribute: []kmip.Attribute{
				nameAttribute(o.name), attribute(kmip.AttributeNameObjectType, o.kind), attribute(kmip.AttributeNameState, o.state),
				attribute(kmip.AttributeNameCryptographicAlgorithm, kmip.CryptographicAlgorithmAES),
				attribute(kmip.AttributeNameCryptographicLength, int32(len(o.material)*8)), //nolint:gosec // a key
				attribute(kmip.AttributeNameActivationDate, o.since),
			}}
		}
	case *payloads.GetRequestPayload:
		if o := find(request.UniqueIdentifier); o != nil && request.KeyWrappingSpecification != nil {
			return o.wrapped(request)
		} else if o != nil {
			m.gets = append(m.gets, o.id)
			block := kmip.KeyBlock{
				KeyFormatType: kmip.KeyFormatTypeRaw, KeyValue: &kmip.KeyValue{Plain: &kmip.PlainKeyValue{KeyMaterial: kmip.KeyMaterial{Bytes: &o.material}}},
				CryptographicAlgorithm: kmip.CryptographicAlgorithmAES, CryptographicLength: int32(len(o.material) * 8), //nolint:gosec // a key
			}
			reply := &payloads.GetResponsePayload{ObjectType: o.kind, UniqueIdentifier: o.id, Object: &kmip.SymmetricKey{KeyBlock: block}}
			if o.kind == kmip.ObjectTypePrivateKey {
				reply.Object = &kmip.PrivateKey{KeyBlock: block}
			}
			return reply
		}
	case *payloads.SignRequestPayload:
		if m.private == nil {
			return nil
		}
		if signature, err := signAs(m.private, request); err == nil {
			return &payloads.SignResponsePayload{UniqueIdentifier: request.UniqueIdentifier, SignatureData: signature}
		}
	}
	return nil
}

// wrapped answers a request for a wrapped key, with bytes that are not encrypted. Another format than
// the key's own is refused.
func (o *stored) wrapped(request *payloads.GetRequestPayload) kmip.OperationPayload {
	if request.KeyFormatType != 0 {
		return nil
	}
	return &payloads.GetResponsePayload{ObjectType: o.kind, UniqueIdentifier: o.id, Object: &kmip.SymmetricKey{KeyBlock: kmip.KeyBlock{
		KeyFormatType: kmip.KeyFormatTypeRaw, KeyValue: &kmip.KeyValue{Plain: &kmip.PlainKeyValue{KeyMaterial: kmip.KeyMaterial{Bytes: &o.material}}},
		KeyWrappingData: &kmip.KeyWrappingData{WrappingMethod: kmip.WrappingMethodEncrypt, EncodingOption: kmip.EncodingOptionNoEncoding},
	}}}
}

func (o *stored) matches(attributes []kmip.Attribute) bool {
	for _, attribute := range attributes {
		switch value := attribute.AttributeValue.(type) {
		case kmip.Name:
			if value.NameValue != o.name {
				return false
			}
		case kmip.ObjectType:
			if value != o.kind {
				return false
			}
		}
	}
	return true
}
