// SPDX-License-Identifier: Apache-2.0

package kmip

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/ovh/kmip-go"
	"github.com/ovh/kmip-go/ttlv"
)

const (
	// maxMessage is the largest reply in bytes that is read.
	maxMessage = 1 << 20
	// headerSize is the number of bytes in front of the content of a message: tag, type and
	// length.
	headerSize = 8
	// structure is the type of an item that has other items.
	structure = 0x01
)

var (
	// errTooLarge is the error of a reply that was not read, because of its size.
	errTooLarge = errors.New("the reply is too large")
	// errUndecoded is the error of a reply that was read and cannot be used: it is not valid, or it has an
	// object that the library does not know.
	errUndecoded = errors.New("decode the reply")
)

// exchange sends a message once and returns the reply. After any error but errUndecoded, the
// connection is unusable.
//
// The buffers of both messages may contain keys, so they are cleared.
func exchange(ctx context.Context, conn net.Conn, request *kmip.RequestMessage) (*kmip.ResponseMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // closing it ends the calls below
	reply, err := roundTrip(conn, request)
	if !stop() {
		return nil, ctx.Err()
	}
	return reply, err
}

func roundTrip(conn io.ReadWriter, request *kmip.RequestMessage) (*kmip.ResponseMessage, error) {
	sent := ttlv.MarshalTTLV(request)
	defer clear(sent)
	if _, err := conn.Write(sent); err != nil {
		return nil, err
	}
	received, err := receive(conn)
	defer clear(received)
	if err != nil {
		return nil, err
	}
	return decode(received)
}

// receive reads a message.
func receive(conn io.Reader) ([]byte, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(conn, header[:]); err != nil {
		return nil, err
	}
	tag := int(header[0])<<16 | int(header[1])<<8 | int(header[2])
	if tag != kmip.TagResponseMessage || header[3] != structure {
		return nil, errors.New("found data that is not a KMIP reply")
	}
	size := binary.BigEndian.Uint32(header[4:])
	if size > maxMessage-headerSize {
		return nil, fmt.Errorf("%w: found %d bytes, expected at most %d", errTooLarge, size, maxMessage-headerSize)
	}
	message := make([]byte, headerSize+int(size))
	copy(message, header[:])
	_, err := io.ReadFull(conn, message[headerSize:])
	return message, err
}

// decode decodes a reply. A panic of the library becomes an error, see guarded.
func decode(message []byte) (reply *kmip.ResponseMessage, err error) {
	err = guarded(func() error {
		reply = new(kmip.ResponseMessage)
		return ttlv.UnmarshalTTLV(message, reply)
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUndecoded, err)
	}
	return reply, nil
}

// guarded runs code of the library that interprets the reply of a server, and turns a panic into
// an error. The text of the panic may quote the reply, so it is not used.
func guarded(interpret func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("it is not valid")
		}
	}()
	return interpret()
}
