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
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
)

// The numbers of the fields of requests with a start or a chunk, and of the field metadata in
// the starts and in the replies.
const (
	chunksStart, chunksChunk              protowire.Number = 1, 2
	chunksMetadata, chunksRepliedMetadata protowire.Number = 3, 1
)

// maxStreamMetadata is the largest size in bytes of the metadata in a start, with its tag, its
// length and unknown fields. The limit is low because the broker keeps the metadata until the
// stream ends, and does not count it in the memory of the share.
const maxStreamMetadata = flow.SmallMessage

// smallPerYield is the number of small messages of a stream that are served before the stream
// yields to others. Small messages take longer to receive than to serve.
const smallPerYield = 64

// chunked is an operation on an input that comes in chunks.
type chunked interface {
	// begin reads the start and finds the profile.
	begin(start []byte) error
	// ready is called after begin, when the memory of the start is free.
	ready() error
	// add serves a chunk.
	add(chunk []byte) error
	// end serves the end of the input, and returns the last reply.
	end() (proto.Message, error)
	// close overwrites the secrets of the operation. It is called last.
	close()
}

// chunks is one call with an input that comes in chunks. It holds one chunk at a time.
type chunks struct {
	server  *streamService
	stream  grpc.ServerStream
	call    handlers.Call
	started time.Time
	flow.Incoming
	operation chunked
	// request is the name of the messages, and largest the size of the largest chunk in bytes.
	request protoreflect.FullName
	largest int

	// progress is the time at which the client last did something, in nanoseconds after started.
	progress atomic.Int64
	// working reports whether the client need not send anything, because the broker works, or
	// waits for the client to read.
	working atomic.Bool
	// unwritten is the number of parts of the output that gRPC has not written, because the client
	// does not read.
	unwritten atomic.Int64
	// idle reports whether the stream ended because the client did nothing.
	idle atomic.Bool

	begun    bool // whether the start has come
	metadata []byte
	small    int // how many messages were smaller than SmallMessage
}

// newChunks returns a call of an operation.
func (s *streamService) newChunks(op profile.Operation, stream grpc.ServerStream, request proto.Message, largest int) *chunks {
	return &chunks{
		server: s, stream: stream, started: time.Now(), largest: largest,
		call:    handlers.Call{Operation: op, Context: stream.Context()},
		request: request.ProtoReflect().Descriptor().FullName(),
	}
}

// run serves the call, whose messages have been opened. leave releases what the call holds,
// unless it ends with a reply.
//
// A second goroutine receives the messages. If it waits for a message, gRPC ends the wait
// only when the handler returns.
func (h *chunks) run(operation chunked, leave func()) error {
	h.operation = operation
	idleTime := h.server.IdleTime
	done := make(chan error, 1)
	h.server.Metrics.Begin()
	go func() { done <- h.serve(leave) }()
	idle := time.NewTimer(idleTime)
	defer idle.Stop()
	unread := false // whether there was unread output after the last idleTime
	for {
		select {
		case err := <-done:
			return err
		case <-h.call.Context.Done():
			return <-done
		case <-idle.C:
			if left := idleTime - time.Since(h.started) + time.Duration(h.progress.Load()); left > 0 {
				unread = false
				idle.Reset(left)
				continue
			}
			if h.WaitsForMemory() || h.working.Load() { // the client is not slow to send
				idle.Reset(idleTime)
				continue
			}
			if h.unwritten.Load() > 0 {
				if unread {
					flow.ConnOf(h.call.Context).LeftUnread() // which ends the call
				}
				unread = true
				idle.Reset(idleTime)
				continue
			}
			h.idle.Store(true)
			return h.tooSlow()
		}
	}
}

// noteProgress records that the client did something.
func (h *chunks) noteProgress() { h.progress.Store(int64(time.Since(h.started))) }

// work records that the client need not send anything until done is called.
func (h *chunks) work() (done func()) {
	h.working.Store(true)
	return func() {
		h.noteProgress()
		h.working.Store(false)
	}
}

// serve receives all messages and sends the replies.
func (h *chunks) serve(leave func()) (err error) {
	s := h.server
	defer func() {
		if cause := recover(); cause != nil {
			err = s.Panicked(h.call.Operation.String(), cause)
		}
		h.operation.close()
		if h.idle.Load() { // run has returned this error to the client
			err = h.tooSlow()
		}
		h.call.Metadata = h.metadata
		err = s.Record(&h.call, err)
		if err != nil {
			leave()
		}
		s.Ended(&h.call, status.Code(err), h.started, time.Now())
	}()
	for {
		wire, err := h.Next(h.call.Context)
		switch {
		case errors.Is(err, io.EOF) && !h.begun:
			return requests.Invalid(h.call.Operation, "start", "is missing, expected it in the first message")
		case errors.Is(err, io.EOF):
			return h.finish()
		case err != nil:
			return err
		}
		h.noteProgress()
		h.call.RequestSize += len(*wire)
		if len(*wire) < flow.SmallMessage {
			if h.small++; h.small%smallPerYield == 0 {
				h.Slot.Caller().Yield()
			}
		}
		began := h.begun
		err = h.take(*wire)
		h.Done(wire)
		if err == nil && !began {
			err = h.ready()
		}
		if err != nil {
			return err
		}
	}
}

// tooSlow is the error of a client that does nothing.
func (h *chunks) tooSlow() error {
	return status.Errorf(codes.DeadlineExceeded, "%s: no chunk came within %s", h.call.Operation, h.server.IdleTime)
}

// ready records that the stream begins, before a part of its output leaves the broker.
func (h *chunks) ready() error {
	if h.call.Operation != profile.OpHashData {
		h.call.Metadata = h.metadata
		if err := h.server.RecordBegin(&h.call); err != nil {
			return err
		}
	}
	return h.operation.ready()
}

// finish sends the last reply, once the call is recorded. The slot belongs to gRPC then.
func (h *chunks) finish() error {
	reply, err := h.operation.end()
	if err != nil {
		return err
	}
	h.call.Metadata, h.call.ReplySize = h.metadata, proto.Size(reply)
	if err := h.server.Record(&h.call, nil); err != nil {
		return err
	}
	return h.sendEnd(reply)
}

// sendEnd sends the last reply. The slot is free once gRPC has written this reply and all replies
// before it.
func (h *chunks) sendEnd(reply proto.Message) error {
	defer h.work()()
	if err := h.Slot.Encode(h.call.Operation, reply, h.call.ReplySize, nil); err != nil {
		return err
	}
	_ = h.stream.SendMsg(h.Slot) // this fails if the client is gone; from here on the slot belongs to gRPC
	return nil
}

// take serves one message: the start, or a chunk.
func (h *chunks) take(wire []byte) error {
	number, part, err := h.part(wire)
	switch {
	case err != nil:
		return err
	case number == chunksStart && !h.begun:
		h.begun = true
		return h.operation.begin(part)
	case number == chunksStart:
		return requests.Invalid(h.call.Operation, "start", "is there again, expected it in the first message only")
	case !h.begun:
		return requests.Invalid(h.call.Operation, "start", "is missing, expected it in the first message")
	}
	if err := requests.CheckSize(h.call.Operation, "chunk", len(part), h.largest); err != nil {
		return err
	}
	return h.operation.add(part)
}

// part returns the one field of a message, and its number.
func (h *chunks) part(wire []byte) (found protowire.Number, part []byte, err error) {
	for len(wire) > 0 {
		number, kind, n := protowire.ConsumeTag(wire)
		if n < 0 {
			return 0, nil, h.unreadable(protowire.ParseError(n))
		}
		wire = wire[n:]
		if (number == chunksStart || number == chunksChunk) && kind == protowire.BytesType {
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

func (h *chunks) unreadable(err error) error {
	return status.Errorf(codes.InvalidArgument, "%s: a message is not a %s: %v", h.call.Operation, h.request, err)
}

// readStart reads a start, and keeps its metadata for the reply.
func (h *chunks) readStart(wire []byte, start requests.Request[*v1.Metadata, *v1.TraceContext]) error {
	if err := requests.Unmarshal(wire, start); err != nil {
		return h.unreadable(err)
	}
	if err := requests.CheckMetadata(h.call.Operation, start.GetMetadata()); err != nil {
		return err
	}
	h.metadata = requests.Retag(nil, wire, chunksMetadata, chunksRepliedMetadata)
	return requests.CheckSize(h.call.Operation, "start.metadata", len(h.metadata), maxStreamMetadata)
}

// inTurn runs a part of the call that uses a key, when it is the call's turn for a worker. If
// the part has to wait for a key manager, it runs again in this goroutine, which may wait.
func (h *chunks) inTurn(part func() error) (err error) {
	defer h.work()()
	ctx := h.call.Context
	h.server.InTurn(ctx, func() {
		defer func() {
			if cause := recover(); cause != nil {
				err = h.server.Panicked(h.call.Operation.String(), cause)
			}
		}()
		if err = ctx.Err(); err != nil {
			err = status.FromContextError(err).Err()
			return
		}
		err = part()
	})
	if errors.Is(err, handlers.ErrWaits) {
		h.call.MayWait = true
		err = part()
	}
	return err
}
