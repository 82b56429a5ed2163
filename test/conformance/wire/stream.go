// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
)

// EncryptStream returns the encrypted stream. keyID is the id of the wrapping key.
func (c *Client) EncryptStream(ctx context.Context, profile, keyID string, streamContext, plaintext []byte) ([]byte, error) {
	return c.stream(ctx, methodEncryptStream, Message{}.Text(1, profile).Text(2, keyID).Bytes(4, streamContext), plaintext)
}

// DecryptStream returns the plaintext of an encrypted stream.
func (c *Client) DecryptStream(ctx context.Context, profile string, streamContext, encrypted []byte) ([]byte, error) {
	return c.stream(ctx, methodDecryptStream, Message{}.Text(1, profile).Bytes(4, streamContext), encrypted)
}

// streamChunk is the size of a chunk in bytes. It is no divisor of the size of a segment.
const streamChunk = 50_000

// stream sends a start and the input in chunks, and returns the chunks of the replies.
func (c *Client) stream(ctx context.Context, method string, start Message, input []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	call, err := c.newStream(ctx, method)
	if err != nil {
		return nil, err
	}
	go func() {
		// The replies have the reason of an error.
		if call.SendMsg(Message{}.Bytes(1, start)) != nil {
			return
		}
		for len(input) > 0 {
			n := min(streamChunk, len(input))
			if call.SendMsg(Message{}.Bytes(2, input[:n])) != nil {
				return
			}
			input = input[n:]
		}
		_ = call.CloseSend() // it never fails
	}()
	var output []byte
	for ended := false; ; {
		var data []byte
		switch err := call.RecvMsg(&data); {
		case errors.Is(err, io.EOF) && ended:
			return output, nil
		case errors.Is(err, io.EOF):
			return nil, errors.New("the call succeeded, and its replies have no end")
		case err != nil:
			return nil, err
		}
		r, err := parseReply(data)
		if err != nil {
			return nil, err
		}
		if ended {
			return nil, errors.New("there is a reply after the end")
		}
		output = append(output, r.bytes[2]...)
		_, ended = r.bytes[1]
	}
}

// newStream begins a call with many requests and replies.
func (c *Client) newStream(ctx context.Context, method string) (grpc.ClientStream, error) {
	both := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	return c.conn.NewStream(ctx, both, method, grpc.ForceCodecV2(Codec{}), grpc.WaitForReady(true))
}
