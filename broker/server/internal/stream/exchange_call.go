// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/rpc"
)

// The numbers of the fields of ExchangeRequest and Call. exchangeMethods has the numbers of
// the requests in Call.
const (
	exchangeCalls       protowire.Number = 1
	exchangeGivenUp     protowire.Number = 2
	callID, callTimeout protowire.Number = 1, 2
)

// exchangeCall is one call that was read from a message.
type exchangeCall struct {
	id      uint64
	timeout time.Duration // 0 for none
	number  protowire.Number
	request []byte
	// requests is the number of requests of the call. A valid call has one.
	requests int
}

// parseCall reads a call. If a field is there twice, the last one counts.
func (s *streamService) parseCall(wire []byte) (call exchangeCall, err error) {
	for len(wire) > 0 {
		number, kind, n := protowire.ConsumeTag(wire)
		if n < 0 {
			return call, protowire.ParseError(n)
		}
		wire = wire[n:]
		switch {
		case (number == callID || number == callTimeout) && kind == protowire.VarintType:
			var value uint64
			if value, n = protowire.ConsumeVarint(wire); n >= 0 && number == callID {
				call.id = value
			} else if n >= 0 {
				call.timeout = time.Duration(uint32(value)) * time.Millisecond
			}
		case kind == protowire.BytesType && s.methods[number] != nil:
			call.number, call.requests = number, call.requests+1
			call.request, n = protowire.ConsumeBytes(wire)
		default:
			n = protowire.ConsumeFieldValue(number, kind, wire)
		}
		if n < 0 {
			return call, protowire.ParseError(n)
		}
		wire = wire[n:]
	}
	return call, nil
}

// fieldsPerTurn is the number of fields of a message that a stream serves before another stream
// or connection of its caller has a turn.
const fieldsPerTurn = 256

// serve serves the calls of one message, in turns of the caller. An error ends the stream,
// because a call that cannot be read has no id to reply to.
func (x *exchange) serve(message *exchangeMessage, now time.Time) error {
	defer x.turn.End()
	wire := *message.wire
	for served := 0; len(wire) > 0; served++ {
		if served%fieldsPerTurn == 0 {
			x.turn.End()
		}
		x.turn.Begin()
		number, kind, n := protowire.ConsumeTag(wire)
		if n < 0 {
			return unreadableExchange(protowire.ParseError(n))
		}
		wire = wire[n:]
		if number != exchangeCalls || kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, wire); n < 0 {
				return unreadableExchange(protowire.ParseError(n))
			}
			if number == exchangeGivenUp {
				if err := x.giveUp(kind, wire[:n]); err != nil {
					return unreadableExchange(err)
				}
			}
			wire = wire[n:]
			continue
		}
		part, n := protowire.ConsumeBytes(wire)
		if n < 0 {
			return unreadableExchange(protowire.ParseError(n))
		}
		wire = wire[n:]
		call, err := x.server.parseCall(part)
		if err != nil {
			return unreadableExchange(err)
		}
		method := x.server.methods[call.number]
		switch err := x.validate(&call); {
		case err != nil:
			x.reply(newReply(call.id, 0, nil, 0, err))
		case len(call.request) <= method.QuickSize:
			x.server.Workers.NoteQuickCall(x.from.Calls(), now)
			ended, waits := x.serveNow(method, &call, now)
			if waits {
				if err := x.submit(x.newJob(method, &call, now, message), true); err != nil {
					x.server.Ended(&x.quick, status.Code(err), now, ended)
					return err
				}
			}
			now = ended
		default:
			if err := x.submit(x.newJob(method, &call, now, message), false); err != nil {
				return err
			}
			now = time.Now()
		}
		if x.broken != nil {
			return x.broken
		}
	}
	return nil
}

// giveUp ends calls of the workers for which the client does not wait any more. value has their
// ids, either packed, as proto3 writes them, or one id in each field.
func (x *exchange) giveUp(kind protowire.Type, value []byte) error {
	if kind == protowire.BytesType {
		value, _ = protowire.ConsumeBytes(value) // serve has read the field without an error
	} else if kind != protowire.VarintType {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(value) > 0 {
		id, n := protowire.ConsumeVarint(value)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if j := x.jobs[id]; j != nil {
			j.giveUp()
		}
		value = value[n:]
	}
	return nil
}

func unreadableExchange(err error) error {
	return status.Errorf(codes.InvalidArgument, "Exchange: a message is not a cryptobroker.stream.v1.ExchangeRequest: %v", err)
}

// validate refuses a call that does not have exactly one request, or whose id is in use.
func (x *exchange) validate(call *exchangeCall) error {
	switch call.requests {
	case 0:
		return status.Error(codes.Unimplemented, "Exchange: the call has none of the requests that this broker knows")
	case 1:
	default:
		return status.Errorf(codes.InvalidArgument, "Exchange: the call has %d requests, expected one", call.requests)
	}
	if x.jobCount.Load() == 0 {
		return nil
	}
	x.mu.Lock()
	_, twice := x.jobs[call.id]
	x.mu.Unlock()
	if twice {
		return status.Errorf(codes.InvalidArgument, "Exchange: a call with the id %d is being served, expected an id that is free", call.id)
	}
	return nil
}

// serveNow serves a quick call. It returns the time at which the call ended. If the call has to
// wait for a key manager, serveNow does not serve it and returns waits true.
func (x *exchange) serveNow(method *rpc.ExchangedMethod, wire *exchangeCall, began time.Time) (ended time.Time, waits bool) {
	s := x.server
	c := &x.quick
	*c = handlers.Call{Operation: method.Operation, Context: x.ctx, Batched: true, RequestSize: len(wire.request), Metadata: requests.Reusable(c.Metadata)}
	if wire.timeout > 0 {
		c.Deadline = began.Add(wire.timeout)
	}
	s.Metrics.Begin()
	message, err := s.run(method, c, wire.request)
	ended = time.Now()
	if errors.Is(err, handlers.ErrWaits) {
		c.Free()
		return ended, true
	}
	err = s.Record(c, err)
	s.Ended(c, status.Code(err), began, ended)
	x.reply(newReply(wire.id, wire.number, message, c.ReplySize, err))
	return ended, false
}

// run serves a call. A panic becomes an error of the call.
func (s *streamService) run(method *rpc.ExchangedMethod, c *handlers.Call, request []byte) (reply proto.Message, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			reply, err = nil, s.Panicked(method.Operation.String(), cause)
		}
	}()
	return method.Run(c, request)
}

// reply keeps a reply of the reader until all calls of the message are served, or the
// buffer is full.
func (x *exchange) reply(r encodedReply) {
	if !x.quickReplies.room(r.whole) {
		x.broken = x.sendQuick()
		x.quickReplies.room(r.whole)
	}
	*x.quickReplies.buffer = r.append(*x.quickReplies.buffer)
	x.made++
}

// queueQuick queues the reader's replies. The caller has locked x.mu.
func (x *exchange) queueQuick() {
	if x.quickReplies.buffer != nil {
		x.put(x.quickReplies)
		x.quickReplies = replies{}
	}
}

// sendQuick sends the reader's replies, and waits while there are too many replies that the
// client has not read. It returns the error that ends the stream, or nil.
func (x *exchange) sendQuick() error {
	x.turn.End()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.queueQuick()
	x.flush()
	x.drain()
	return x.endError()
}
