// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"errors"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	streamv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/stream/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine/segment"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/blob"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/buffers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/limits"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/wirev1"
)

// cipherMemory is the number of bytes of its caller's share that a stream takes to encrypt or
// decrypt: buffers for two segments, a chunk, a reply, and up to two replies that gRPC has not
// written. The stream takes all of it at once and holds it until its end, so it never waits for
// memory while it holds some.
const cipherMemory = 6 * limits.MaxChunkSize

// The fields of EncryptStreamResponse and DecryptStreamResponse.
const repliedChunk protowire.Number = 2

// ciphering has the state that EncryptStream and DecryptStream share. It writes the output.
type ciphering struct {
	*chunks
	profile string
	context []byte
	sent    bool // whether a part of the output was sent
}

// cipherStream serves EncryptStream or DecryptStream. start returns the operation.
func (s *streamService) cipherStream(op profile.Operation, stream grpc.ServerStream, request proto.Message, start func(*ciphering) chunked) error {
	ctx := stream.Context()
	conn := flow.ConnOf(ctx)
	if err := conn.Caller.EnterStream(op); err != nil {
		return err
	}
	defer conn.Caller.LeaveStream()
	p, err := conn.Enter(op)
	if err != nil {
		return err
	}
	h := s.newChunks(op, stream, request, limits.MaxChunkSize)
	if err := h.Open(ctx, p, op, limits.MaxChunkMessageSize, s.IdleTime); err != nil {
		p.End()
		return err
	}
	c := &ciphering{chunks: h}
	return h.run(start(c), c.leave)
}

// reserve takes the memory of the stream.
func (c *ciphering) reserve() error { return c.Reserve(c.call.Context, cipherMemory) }

// Write implements io.Writer. It sends a part of the output, and waits while the client does not
// read. gRPC buffers up to 64 KiB that are not written yet, and one message more.
func (c *ciphering) Write(data []byte) (int, error) {
	head := protowire.SizeTag(repliedChunk) + protowire.SizeVarint(uint64(len(data)))
	buffer := buffers.Pool.Get(head + len(data))
	wire := protowire.AppendTag((*buffer)[:0], repliedChunk, protowire.BytesType)
	*buffer = protowire.AppendBytes(wire, data)
	defer c.work()()
	c.sent = true
	c.call.StreamedSize += len(*buffer)
	c.unwritten.Add(1)
	if err := c.Slot.Send(c.stream, flow.EncodedMessage{mem.NewBuffer(buffer, counted{&c.unwritten})}); err != nil {
		return 0, err
	}
	return len(data), nil
}

// counted is the pool of buffers with output. It counts down when gRPC has written one.
type counted struct{ unwritten *atomic.Int64 }

// Get implements mem.BufferPool.
func (counted) Get(size int) *[]byte { return buffers.Pool.Get(size) }

// Put implements mem.BufferPool.
func (c counted) Put(buffer *[]byte) {
	buffers.Pool.Put(buffer)
	c.unwritten.Add(-1)
}

// endOf returns the last message of a reply stream.
func (c *ciphering) endOf() *streamv1.StreamEnd {
	end := &streamv1.StreamEnd{Descriptor_: wirev1.Descriptor(&c.call, c.profile, algorithm.AES256GCMHKDF64KB.String())}
	requests.Identify(end, chunksRepliedMetadata, c.metadata, c.call.Warning)
	return end
}

// leave releases the slot after an error. If gRPC may have unwritten replies, leave sends an
// empty reply after them, and the slot is free once gRPC has written that reply. Clients ignore
// it.
func (c *ciphering) leave() {
	if !c.sent || c.sendEnd(&streamv1.EncryptStreamResponse{}) != nil {
		c.Slot.End()
	}
}

// encrypting is one call of EncryptStream.
type encrypting struct {
	*ciphering
	dataKey, wrapped []byte // from begin to ready
	encrypter        *segment.Encrypter
}

func (s *streamService) encryptStream(_ any, stream grpc.ServerStream) error {
	return s.cipherStream(profile.OpEncryptStream, stream, &streamv1.EncryptStreamRequest{}, func(c *ciphering) chunked {
		return &encrypting{ciphering: c}
	})
}

func (e *encrypting) begin(wire []byte) error {
	start := &streamv1.EncryptStreamStart{}
	if err := e.readStart(wire, start); err != nil {
		return err
	}
	e.profile, e.context = start.GetProfile(), start.GetContext()
	return e.inTurn(func() (err error) {
		e.dataKey, e.wrapped, err = e.server.NewStreamKey(&e.call, e.profile, start.GetKeyId(), e.context)
		return err
	})
}

// ready sends the header.
func (e *encrypting) ready() error {
	defer clear(e.dataKey)
	if err := e.reserve(); err != nil {
		return err
	}
	if _, err := e.Write(blob.AppendStreamHeader(nil, e.wrapped)); err != nil {
		return err
	}
	var err error
	e.encrypter, err = segment.NewEncrypter(e, e.dataKey, blob.StreamAdditional(e.context))
	return err
}

func (e *encrypting) add(chunk []byte) error {
	_, err := e.encrypter.Write(chunk)
	return e.failed(err)
}

func (e *encrypting) end() (proto.Message, error) {
	if err := e.encrypter.Close(); err != nil {
		return nil, e.failed(err)
	}
	return &streamv1.EncryptStreamResponse{Part: &streamv1.EncryptStreamResponse_End{End: e.endOf()}}, nil
}

func (e *encrypting) failed(err error) error {
	if errors.Is(err, segment.ErrTooLong) {
		return requests.Refused(codes.InvalidArgument, e.call.Operation, e.profile, "the plaintext is longer than 256 TiB")
	}
	return err
}

func (e *encrypting) close() {
	clear(e.dataKey)
	if e.encrypter != nil {
		e.encrypter.Abort()
	}
}

// decrypting is one call of DecryptStream.
type decrypting struct {
	*ciphering
	policy *profile.DataKeyPolicy
	// header is the received part of the header. size is the size of the header as far as the
	// received part says it.
	header    []byte
	size      int
	decrypter *segment.Decrypter // nil before the header is complete
}

func (s *streamService) decryptStream(_ any, stream grpc.ServerStream) error {
	return s.cipherStream(profile.OpDecryptStream, stream, &streamv1.DecryptStreamRequest{}, func(c *ciphering) chunked {
		return &decrypting{ciphering: c, size: blob.StreamPrefixSize}
	})
}

func (d *decrypting) begin(wire []byte) error {
	start := &streamv1.DecryptStreamStart{}
	if err := d.readStart(wire, start); err != nil {
		return err
	}
	var err error
	d.profile, d.context = start.GetProfile(), start.GetContext()
	d.policy, err = d.server.StreamPolicy(&d.call, d.profile, d.context)
	return err
}

func (d *decrypting) ready() error { return d.reserve() }

func (d *decrypting) add(chunk []byte) error {
	for d.decrypter == nil {
		n := min(len(chunk), d.size-len(d.header))
		d.header, chunk = append(d.header, chunk[:n]...), chunk[n:]
		if len(d.header) < d.size {
			return nil
		}
		if err := d.readHeader(); err != nil {
			return err
		}
	}
	_, err := d.decrypter.Write(chunk)
	return d.failed(err)
}

// readHeader reads the complete parts of the header: first the part before the wrapped key, then
// the wrapped key.
func (d *decrypting) readHeader() error {
	if d.size == blob.StreamPrefixSize {
		size, err := blob.StreamKeySize(d.header)
		if err != nil {
			return requests.Refused(codes.InvalidArgument, d.call.Operation, d.profile, "the input %v", err)
		}
		d.size += size
		return nil
	}
	var dataKey []byte
	err := d.inTurn(func() (err error) {
		given := handlers.WrappedKey{Field: "the stream's ", Blob: d.header[blob.StreamPrefixSize:], Context: d.context}
		dataKey, err = d.server.StreamKey(&d.call, d.profile, d.policy, given)
		return err
	})
	if err != nil {
		return err
	}
	defer clear(dataKey)
	d.header = nil
	if d.decrypter, err = segment.NewDecrypter(d, dataKey, blob.StreamAdditional(d.context)); err != nil {
		return requests.Refused(codes.InvalidArgument, d.call.Operation, d.profile, "the data key of the stream %v", err)
	}
	return nil
}

func (d *decrypting) end() (proto.Message, error) {
	if d.decrypter == nil {
		return nil, requests.Refused(codes.InvalidArgument, d.call.Operation, d.profile, "the input ends in its header, expected an encrypted stream")
	}
	if err := d.decrypter.Close(); err != nil {
		return nil, d.failed(err)
	}
	return &streamv1.DecryptStreamResponse{Part: &streamv1.DecryptStreamResponse_End{End: d.endOf()}}, nil
}

// failed converts an error of the decrypter to the error for the client.
func (d *decrypting) failed(err error) error {
	refuse := func(problem string) error {
		return requests.Refused(codes.InvalidArgument, d.call.Operation, d.profile, "%s; discard what was decrypted", problem)
	}
	switch {
	case errors.Is(err, segment.ErrAuthentication):
		return refuse("the stream does not authenticate: it was changed or cut")
	case errors.Is(err, segment.ErrTruncated):
		return refuse("the end of the stream is missing")
	case errors.Is(err, segment.ErrTooLong):
		return refuse("the stream is longer than 256 TiB")
	}
	return err
}

func (d *decrypting) close() {
	if d.decrypter != nil {
		d.decrypter.Abort()
	}
}
