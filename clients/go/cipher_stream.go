// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"cmp"
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
)

var (
	encryptStream = &operation{name: "EncryptStream", method: "/cryptobroker.stream.v1.StreamService/EncryptStream"}
	decryptStream = &operation{name: "DecryptStream", method: "/cryptobroker.stream.v1.StreamService/DecryptStream"}
)

// The numbers of the fields in requests and replies of EncryptStream and DecryptStream.
const (
	startKeyID, startCipherMetadata, startContext number = 2, 3, 4
	repliedEnd, repliedChunk                      number = 1, 2
	endMetadata, endDescriptor                    number = 1, 2
)

// cipherChunk is the number of bytes of an input in one message. A broker accepts no more.
const cipherChunk = 64 << 10

var cipherDescription = grpc.StreamDesc{ClientStreams: true, ServerStreams: true}

// EncryptStreamRequest says how to encrypt a stream.
type EncryptStreamRequest struct {
	// Profile is the name of the profile. Empty stands for the profile of [WithProfile].
	Profile string
	// KeyID is the id of the wrapping key. The profile has to list it.
	KeyID string
	// Context is what the stream is bound to, at most 4 KiB. It is needed again to decrypt.
	Context []byte
}

// DecryptStreamRequest says how to decrypt a stream.
type DecryptStreamRequest struct {
	// Profile is the name of the profile. Empty stands for the profile of [WithProfile].
	Profile string
	// Context is the context of the stream, empty if it has none.
	Context []byte
}

// StreamResult is the result of [Client.EncryptStream] and [Client.DecryptStream].
type StreamResult struct {
	// Algorithm is the algorithm of the stream, such as "aes256-gcm-hkdf-64kb".
	Algorithm string
	// Deprecation is the warning of a deprecated profile, else nil.
	Deprecation *Deprecation
}

// EncryptStream reads from to its end, and writes it encrypted to to. The data may have any size:
// the memory of client and broker does not grow with it. The output has the wrapped data key in front,
// so [Client.DecryptStream] needs nothing else.
//
// After an error, the output is not complete: discard it. The call is tried again, as other calls
// are, while at most 64 KiB were read and nothing was written. errors.Is finds an error of from and
// of to. EncryptStream waits until a Read of from returns, even if the context ends or the client is
// closed.
func (c *Client) EncryptStream(ctx context.Context, to io.Writer, from io.Reader, r EncryptStreamRequest) (StreamResult, error) {
	return c.cipherStream(ctx, encryptStream, r.Profile, to, from, func(profile string, trace TraceContext) []byte {
		b := appendString(nil, requestProfile, profile)
		b = appendString(b, startKeyID, r.KeyID)
		b = trace.appendMetadata(b, startCipherMetadata)
		return appendBytes(b, startContext, r.Context)
	})
}

// DecryptStream reads what [Client.EncryptStream] has encrypted, and writes the plaintext to to. What
// it writes is authentic, but only a nil error says that nothing is missing: after an error, discard
// the output. The rest is as in EncryptStream.
func (c *Client) DecryptStream(ctx context.Context, to io.Writer, from io.Reader, r DecryptStreamRequest) (StreamResult, error) {
	return c.cipherStream(ctx, decryptStream, r.Profile, to, from, func(profile string, trace TraceContext) []byte {
		b := appendString(nil, requestProfile, profile)
		b = trace.appendMetadata(b, startCipherMetadata)
		return appendBytes(b, startContext, r.Context)
	})
}

// ciphering is one call of EncryptStream or DecryptStream.
type ciphering struct {
	client  *Client
	op      *operation
	profile string
	start   []byte // the first message
	to      io.Writer
	from    io.Reader
	// first is the first chunk, and whole is whether it is all of the input.
	first mem.Buffer
	whole bool
	// begun reports whether more than the first chunk was read, or anything was written.
	begun  bool
	result StreamResult
}

func (c *Client) cipherStream(ctx context.Context, op *operation, profile string, to io.Writer, from io.Reader, start func(string, TraceContext) []byte) (StreamResult, error) {
	profile = cmp.Or(profile, c.profile)
	if !c.enter() {
		return StreamResult{}, errClosed(op, profile)
	}
	defer c.leave()
	ctx, cancel := c.limited(ctx)
	defer cancel()
	var trace TraceContext
	if c.trace != nil {
		trace = c.trace(ctx)
	}
	s := &ciphering{client: c, op: op, profile: profile, to: to, from: from, start: nest(start(profile, trace), 0, streamStart)}
	var err error
	s.first, err = readChunk(from, cipherChunk, cipherChunk)
	defer s.first.Free()
	if s.whole = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF); err != nil && !s.whole {
		return StreamResult{}, s.unread(err).error(op, profile)
	}
	if err := c.repeat(ctx, op, profile, s.try); err != nil {
		return StreamResult{}, err
	}
	return s.result, nil
}

// unread returns the failure of an input that cannot be read.
func (s *ciphering) unread(err error) failure {
	return failure{code: CodeUnknown, message: said(s.op, s.profile, "the input cannot be read: %v", err), cause: err}
}

// try makes the call once.
func (s *ciphering) try(ctx context.Context) failure {
	c := s.client
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.conn.NewStream(ctx, &cipherDescription, s.op.method)
	if err != nil {
		return c.failed(ctx, s.op, s.profile, err)
	}
	type outcome struct {
		more bool
		err  error
	}
	sent := make(chan outcome, 1)
	go func() {
		more, err := s.send(stream)
		if err != nil {
			cancel() // so that the broker does not regard the partial input as complete
		}
		sent <- outcome{more, err}
	}()
	result := s.receive(ctx, stream)
	cancel()
	o := <-sent
	if s.begun = s.begun || o.more; result.failed() && o.err != nil {
		result = s.unread(o.err)
	}
	if result.transient() && s.begun {
		result.final = true
		result.message += "; a part of the data was processed already"
	}
	return result
}

// send sends the input. It returns an error of the input, and whether more than the first chunk was
// read. If the stream ends early, receive knows why.
func (s *ciphering) send(stream grpc.ClientStream) (more bool, unread error) {
	err := stream.SendMsg(&outgoing{buffer: mem.SliceBuffer(s.start)})
	if err == nil && s.first.Len() > 0 {
		err = sendChunk(stream, s.first)
	}
	for whole := s.whole; err == nil && !whole; {
		more = true
		chunk, failed := readChunk(s.from, cipherChunk, cipherChunk)
		whole = errors.Is(failed, io.EOF) || errors.Is(failed, io.ErrUnexpectedEOF)
		if failed != nil && !whole {
			chunk.Free()
			return more, failed
		}
		if chunk.Len() > 0 {
			err = sendChunk(stream, chunk)
		}
		chunk.Free()
	}
	if err == nil {
		_ = stream.CloseSend() // it never returns an error
	}
	return more, nil
}

// receive writes the output.
func (s *ciphering) receive(ctx context.Context, stream grpc.ClientStream) failure {
	ended := false
	for {
		var reply incoming
		err := stream.RecvMsg(&reply)
		switch {
		case errors.Is(err, io.EOF) && ended:
			return failure{}
		case errors.Is(err, io.EOF):
			return s.unreadable(errors.New("they have no end"))
		case err != nil:
			return s.client.failed(ctx, s.op, s.profile, err)
		}
		found, result := s.take(reply.buffer.ReadOnlyData())
		reply.free()
		if result.failed() {
			return result
		}
		ended = ended || found
	}
}

// take serves one reply, and reports whether it is the end.
func (s *ciphering) take(reply []byte) (ended bool, _ failure) {
	f := fields{wire: reply}
	for f.next() {
		switch f.number {
		case repliedChunk:
			s.begun = true
			if _, err := s.to.Write(f.bytes); err != nil {
				return false, failure{code: CodeUnknown, message: said(s.op, s.profile, "the output cannot be written: %v", err), cause: err}
			}
		case repliedEnd:
			ended = true
			if err := s.readEnd(f.bytes); err != nil {
				return false, s.unreadable(err)
			}
		}
	}
	if f.err != nil {
		return false, s.unreadable(f.err)
	}
	return ended, failure{}
}

func (s *ciphering) readEnd(end []byte) (err error) {
	f := fields{wire: end}
	for f.next() && err == nil {
		switch f.number {
		case endMetadata:
			s.result.Deprecation, err = s.client.deprecation(f.bytes)
		case endDescriptor:
			s.result.Algorithm, err = s.client.algorithm(f.bytes)
		}
	}
	return errors.Join(err, f.err)
}

func (s *ciphering) unreadable(err error) failure {
	return failure{code: CodeInternal, message: said(s.op, s.profile, "the replies cannot be read: %v", err), cause: err}
}
