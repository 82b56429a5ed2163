// SPDX-License-Identifier: Apache-2.0

package framed

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
)

// joinedHeaderSize is the size of a header with an id in bytes: kind, id and length.
const joinedHeaderSize = 9

// joined is one end of a connection that carries many calls at the same time. It writes
// all waiting messages in one system call.
type joined struct {
	net.Conn
	reader *bufio.Reader

	mu sync.Mutex
	// waiting has small messages, one after the other, that are not written yet. Parts
	// of messages with large bodies are written before them.
	waiting []byte
	parts   net.Buffers
	// spare is the last buffer of waiting, for reuse.
	spare   []byte
	writing bool  // whether a goroutine writes
	err     error // the first of writing
}

func newJoined(conn net.Conn) *joined {
	return &joined{Conn: conn, reader: bufio.NewReaderSize(conn, bufferSize)}
}

// header returns the header of a message.
type header struct {
	kind byte
	id   uint32
	size int
}

func (j *joined) receiveHeader() (header, error) {
	var bytes [joinedHeaderSize]byte
	if _, err := io.ReadFull(j.reader, bytes[:]); err != nil {
		return header{}, err
	}
	h := header{bytes[0], binary.BigEndian.Uint32(bytes[1:]), int(binary.BigEndian.Uint32(bytes[5:]))}
	if h.size > maxSize {
		return header{}, fmt.Errorf("a message of %d bytes, expected at most %d", h.size, maxSize)
	}
	return h, nil
}

// receiveBody reads the body of a message into a buffer, or into a larger one.
func (j *joined) receiveBody(h header, into []byte) ([]byte, error) {
	if cap(into) < h.size {
		into = make([]byte, h.size)
	}
	into = into[:h.size]
	_, err := io.ReadFull(j.reader, into)
	return into, err
}

// complete reports whether the buffer has a whole message.
func (j *joined) complete() bool {
	if j.reader.Buffered() < joinedHeaderSize {
		return false
	}
	bytes, err := j.reader.Peek(joinedHeaderSize)
	return err == nil && j.reader.Buffered() >= joinedHeaderSize+int(binary.BigEndian.Uint32(bytes[5:]))
}

// add adds a message to those that wait for flush. It does not copy a body of more than
// bufferSize, which must not change until it is written.
func (j *joined) add(kind byte, id uint32, body []byte) error {
	var bytes [joinedHeaderSize]byte
	bytes[0] = kind
	binary.BigEndian.PutUint32(bytes[1:], id)
	binary.BigEndian.PutUint32(bytes[5:], uint32(len(body)))
	j.mu.Lock()
	defer j.mu.Unlock()
	j.waiting = append(j.waiting, bytes[:]...)
	if len(body) > bufferSize {
		j.parts = append(j.parts, j.waiting, body)
		j.waiting = nil
	} else {
		j.waiting = append(j.waiting, body...)
	}
	return j.err
}

// flush writes all waiting messages, unless another goroutine is about to. If other
// goroutines may have messages, it first lets them add these.
func (j *joined) flush(others bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.writing {
		return j.err
	}
	j.writing = true
	for j.err == nil && (len(j.waiting) > 0 || len(j.parts) > 0) {
		if others {
			j.mu.Unlock()
			runtime.Gosched()
			j.mu.Lock()
		}
		small, parts := j.waiting, j.parts
		j.waiting, j.parts, j.spare = j.spare[:0], nil, nil
		j.mu.Unlock()
		err := write(j.Conn, parts, small)
		j.mu.Lock()
		j.spare = small
		if j.err == nil {
			j.err = err
		}
	}
	j.writing = false
	return j.err
}

// write writes parts and the waiting messages in one system call.
func write(to net.Conn, parts net.Buffers, last []byte) error {
	if len(parts) == 0 {
		_, err := to.Write(last)
		return err
	}
	parts = append(parts, last)
	_, err := parts.WriteTo(to)
	return err
}
