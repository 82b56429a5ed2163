// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"cmp"
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	hashStreamMethod = "/cryptobroker.stream.v1.StreamService/HashStream"
	// chunkSize is the number of bytes of an input in one message. A broker accepts up to 1 MiB.
	chunkSize = 256 << 10
)

var hashStreamDescription = grpc.StreamDesc{StreamName: "HashStream", ClientStreams: true}

// HashReader reads input to its end and computes the digest with the algorithm of a profile.
// The input may have any size. An empty name stands for the profile of [WithProfile].
//
// The call is tried again, as other calls are, if at most 256 KiB of the input were read. If
// more was read, it is tried again only if input is an [io.Seeker]: it then reads from the same
// position. errors.Is finds an error of the input. HashReader waits until a Read of the input
// returns, even if the context ends or the client is closed.
func (c *Client) HashReader(ctx context.Context, profile string, input io.Reader) (HashDataResult, error) {
	profile = cmp.Or(profile, c.profile)
	h := &hashReading{client: c, profile: profile, input: input}
	seeker, seekable := input.(io.Seeker)
	if seekable {
		if start, err := seeker.Seek(0, io.SeekCurrent); err == nil {
			h.seeker, h.start = seeker, start
		}
	}
	first, err := readChunk(input, chunkSize, chunkSize)
	defer first.Free()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return c.HashData(ctx, HashDataRequest{Profile: profile, Input: first.ReadOnlyData()})
	case err != nil:
		return HashDataResult{}, h.unread(err).error(hashData, profile)
	}
	if !c.enter() {
		return HashDataResult{}, errClosed(hashData, profile)
	}
	defer c.leave()
	ctx, cancel := c.limited(ctx)
	defer cancel()
	h.first = first
	if c.trace != nil {
		h.trace = c.trace(ctx)
	}
	if err := c.repeat(ctx, hashData, profile, h.try); err != nil {
		return HashDataResult{}, err
	}
	return h.result, nil
}

// hashReading is one call of HashReader.
type hashReading struct {
	client  *Client
	profile string
	input   io.Reader
	// seeker is the input if it can seek to start, else nil.
	seeker io.Seeker
	start  int64
	trace  TraceContext
	// first is the first chunk. beyond is whether more than the first chunk was read.
	first  mem.Buffer
	beyond bool
	result HashDataResult
}

// readChunk reads the next part of an input, of at most size bytes. It has at least least bytes,
// unless there is an error.
func readChunk(from io.Reader, size, least int) (mem.Buffer, error) {
	buffer := buffers.Get(size)
	n, err := io.ReadAtLeast(from, *buffer, least)
	*buffer = (*buffer)[:n]
	return mem.NewBuffer(buffer, buffers), err
}

// unread returns the failure of an input that cannot be read.
func (h *hashReading) unread(err error) failure {
	return failure{code: CodeUnknown, message: said(hashData, h.profile, "the input cannot be read: %v", err), cause: err}
}

// try sends the whole input once.
func (h *hashReading) try(ctx context.Context) failure {
	if h.beyond {
		if _, err := h.seeker.Seek(h.start+int64(h.first.Len()), io.SeekStart); err != nil {
			return h.unread(err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	result := h.send(ctx)
	if result.transient() && h.beyond && h.seeker == nil {
		result.final = true
		result.message += "; the input cannot be read again"
	}
	return result
}

func (h *hashReading) send(ctx context.Context) failure {
	c := h.client
	stream, err := c.conn.NewStream(ctx, &hashStreamDescription, hashStreamMethod)
	if err != nil {
		return c.failed(ctx, hashData, h.profile, err)
	}
	if err = stream.SendMsg(&outgoing{buffer: mem.SliceBuffer(h.begin())}); err == nil {
		err = sendChunk(stream, h.first)
	}
	for err == nil {
		h.beyond = true
		chunk, failed := readChunk(h.input, chunkSize, 1)
		if chunk.Len() > 0 {
			err = sendChunk(stream, chunk)
		}
		chunk.Free()
		if errors.Is(failed, io.EOF) {
			break
		} else if failed != nil {
			return h.unread(failed)
		}
	}
	if err == nil {
		err = stream.CloseSend()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return c.failed(ctx, hashData, h.profile, err)
	}
	// If sending ended with io.EOF, RecvMsg returns the reason.
	var reply incoming
	defer reply.free()
	if err := stream.RecvMsg(&reply); err != nil {
		return c.failed(ctx, hashData, h.profile, err)
	}
	h.result, err = c.hashed(reply.buffer.ReadOnlyData())
	if err == nil && h.result.Digest == nil {
		err = errors.New("it has no digest")
	}
	if err != nil {
		return failure{code: CodeInternal, message: said(hashData, h.profile, "the reply cannot be read: %v", err), cause: err}
	}
	return failure{}
}

// begin returns the first message of the stream.
func (h *hashReading) begin() []byte {
	b := appendString(nil, requestProfile, h.profile)
	b = h.trace.appendMetadata(b, startMetadata)
	b = appendUint(b, startFormat, hashFormatRaw)
	return nest(b, 0, streamStart)
}

func sendChunk(stream grpc.ClientStream, chunk mem.Buffer) error {
	head := protowire.AppendVarint(protowire.AppendTag(nil, streamChunk, protowire.BytesType), uint64(chunk.Len()))
	return stream.SendMsg(&outgoing{head: head, buffer: chunk})
}
