// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	streamv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/stream/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/wirev1"
)

// The numbers of the fields of HashStreamRequest, and of the field metadata in
// HashStreamStart and in the reply.
const (
	hashStreamStart, hashStreamChunk              protowire.Number = 1, 2
	hashStreamMetadata, hashStreamRepliedMetadata protowire.Number = 3, 1
)

// maxStreamMetadata is the largest size in bytes of the metadata in HashStreamStart, with
// its tag, its length and unknown fields. The limit is low because the broker keeps the
// metadata until the stream ends, and takes no memory of the share for it.
const maxStreamMetadata = flow.SmallMessage

// smallPerRest is how many small messages of a stream are served before the stream yields to
// others. Small messages take longer to receive than to hash.
const smallPerRest = 64

// hashStream serves HashStream, which is HashData of an input that comes in chunks. It holds
// one chunk at a time.
//
// A second goroutine receives the messages. If it waits for a message, gRPC ends the wait
// only when the handler returns.
func (s *streamService) hashStream(_ any, stream grpc.ServerStream) error {
	ctx := stream.Context()
	p, err := flow.ConnOf(ctx).Enter(profile.OpHashData)
	if err != nil {
		return err
	}
	h := &hashing{server: s, stream: stream, started: time.Now()}
	h.call = handlers.Call{Operation: profile.OpHashData, Context: ctx}
	if err := h.Open(ctx, p, profile.OpHashData, flow.MaxRequestSize, s.IdleTime); err != nil {
		p.End()
		return err
	}
	done := make(chan error, 1)
	s.Metrics.Begin()
	go func() { done <- h.serve() }()
	idle := time.NewTimer(s.IdleTime)
	defer idle.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-h.call.Context.Done():
			return <-done
		case <-idle.C:
			if left := s.IdleTime - time.Since(h.started) + time.Duration(h.progress.Load()); left > 0 {
				idle.Reset(left)
				continue
			}
			if h.WaitsForMemory() { // the client is not slow
				idle.Reset(s.IdleTime)
				continue
			}
			h.idle.Store(true)
			return status.Errorf(codes.DeadlineExceeded, "%s: no chunk came within %s", h.call.Operation, s.IdleTime)
		}
	}
}

// hashing is one call of HashStream.
type hashing struct {
	server  *streamService
	stream  grpc.ServerStream
	call    handlers.Call
	started time.Time
	flow.Incoming
	// progress is when the last message came, in nanoseconds after started.
	progress atomic.Int64
	// idle is whether the stream ended because no message came.
	idle atomic.Bool

	start    *streamv1.HashStreamStart // nil before the first message
	metadata []byte
	raw      bool
	digest   *engine.Digest
	name     string // the name of the algorithm
	small    int    // how many messages were smaller than SmallMessage
}

// serve receives all messages and sends the reply.
func (h *hashing) serve() (err error) {
	s := h.server
	defer func() {
		if cause := recover(); cause != nil {
			err = s.Panicked(h.call.Operation.String(), cause)
		}
		if err != nil {
			h.Slot.End()
		}
		code := status.Code(err)
		if h.idle.Load() {
			code = codes.DeadlineExceeded
		}
		h.call.Metadata = h.metadata
		s.Ended(&h.call, false, code, h.started, time.Now())
	}()
	for {
		wire, err := h.Next(h.call.Context)
		switch {
		case errors.Is(err, io.EOF):
			return h.reply()
		case err != nil:
			return err
		}
		h.progress.Store(int64(time.Since(h.started)))
		if len(*wire) < flow.SmallMessage {
			if h.small++; h.small%smallPerRest == 0 {
				h.Slot.Caller().Yield()
			}
		}
		err = h.take(*wire)
		h.Done(wire)
		if err != nil {
			return err
		}
	}
}

// take serves one message: it begins the digest, or adds a chunk.
func (h *hashing) take(wire []byte) error {
	number, part, err := h.part(wire)
	switch {
	case err != nil:
		return err
	case number == hashStreamStart && h.start == nil:
		return h.begin(part)
	case number == hashStreamStart:
		return requests.Invalid(h.call.Operation, "start", "is there again, expected it in the first message only")
	case h.start == nil:
		return requests.Invalid(h.call.Operation, "start", "is missing, expected it in the first message")
	}
	if err := requests.CheckSize(h.call.Operation, "chunk", len(part), flow.MaxInputSize); err != nil {
		return err
	}
	h.digest.Add(part)
	return nil
}

// part returns the one field of a message, and its number.
func (h *hashing) part(wire []byte) (found protowire.Number, part []byte, err error) {
	for len(wire) > 0 {
		number, kind, n := protowire.ConsumeTag(wire)
		if n < 0 {
			return 0, nil, h.unreadable(protowire.ParseError(n))
		}
		wire = wire[n:]
		if (number == hashStreamStart || number == hashStreamChunk) && kind == protowire.BytesType {
			if found != 0 {
				return 0, nil, status.Errorf(codes.InvalidArgument, "%s: a message has more than one part, expected a start or a chunk", h.call.Operation)
			}
			if part, n = protowire.ConsumeBytes(wire); n < 0 {
				return 0, nil, h.unreadable(protowire.ParseError(n))
			}
			found = number
		} else if n = protowire.ConsumeFieldValue(number, kind, wire); n < 0 {
			return 0, nil, h.unreadable(protowire.ParseError(n))
		}
		wire = wire[n:]
	}
	if found == 0 {
		return 0, nil, status.Errorf(codes.InvalidArgument, "%s: a message is empty, expected a start or a chunk", h.call.Operation)
	}
	return found, part, nil
}

func (h *hashing) unreadable(err error) error {
	return status.Errorf(codes.InvalidArgument, "%s: a message is not a cryptobroker.stream.v1.HashStreamRequest: %v", h.call.Operation, err)
}

// begin reads HashStreamStart and finds the profile. The digest keeps the algorithm of this
// profile even if the profile changes while chunks come.
func (h *hashing) begin(wire []byte) error {
	h.start = &streamv1.HashStreamStart{}
	if err := requests.Unmarshal(wire, h.start); err != nil {
		return h.unreadable(err)
	}
	c := &h.call
	if err := requests.CheckMetadata(c.Operation, h.start.GetMetadata()); err != nil {
		return err
	}
	h.metadata = requests.Retag(nil, wire, hashStreamMetadata, hashStreamRepliedMetadata)
	h.start.Metadata = nil // h.metadata has it already
	err := requests.CheckSize(c.Operation, "start.metadata", len(h.metadata), maxStreamMetadata)
	if err != nil {
		return err
	}
	if h.raw, err = wirev1.RawHash(c, h.start.GetOutputFormat()); err != nil {
		return err
	}
	policy, err := h.server.HashPolicy(c, h.start.GetProfile())
	if err != nil {
		return err
	}
	h.digest, h.name = engine.NewDigest(policy), policy.Algorithm().String()
	return nil
}

// reply sends the digest. HashDataResponse has the fields of HashStreamResponse.
func (h *hashing) reply() error {
	c := &h.call
	if h.start == nil {
		return requests.Invalid(c.Operation, "start", "is missing, expected it in the first message")
	}
	var buffer [engine.MaxDigestSize]byte
	reply := wirev1.HashReply(c, h.start.GetProfile(), h.name, h.digest.Append(buffer[:0]), h.raw)
	requests.Identify(reply, hashStreamRepliedMetadata, h.metadata, c.Warning)
	if err := h.Slot.Encode(c.Operation, reply, nil); err != nil {
		return err
	}
	_ = h.stream.SendMsg(h.Slot) // it fails if the client is gone; the slot belongs to gRPC now
	return nil
}
