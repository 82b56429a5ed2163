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

// joinedHeaderSize is that of a message with an id: its kind, its id and its length.
const joinedHeaderSize = 9

// joined is one end of a connection that carries many calls at the same time. It
// writes the messages that wait by one system call.
type joined struct {
	net.Conn
	reader *bufio.Reader

	mu sync.Mutex
	// waiting are small messages, one behind the other, that nobody has written yet.
	// Before them go the parts of messages with large bodies.
	waiting []byte
	parts   net.Buffers
	// spare is what waiting was, to be used again.
	spare   []byte
	writing bool  // somebody writes
	err     error // the first of writing
}

func newJoined(conn net.Conn) *joined {
	return &joined{Conn: conn, reader: bufio.NewReaderSize(conn, bufferSize)}
}

// header is what a message begins with.
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

// complete reports whether a whole message has been read from the socket already.
func (j *joined) complete() bool {
	if j.reader.Buffered() < joinedHeaderSize {
		return false
	}
	bytes, err := j.reader.Peek(joinedHeaderSize)
	return err == nil && j.reader.Buffered() >= joinedHeaderSize+int(binary.BigEndian.Uint32(bytes[5:]))
}

// add has a message wait for flush. A body of more than bufferSize is not copied: it
// has to stay as it is until it is written.
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

// flush writes what waits, unless somebody else is about to. It first lets other
// goroutines add what they have, where there may be some.
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

// write writes parts and what follows them by one system call.
func write(to net.Conn, parts net.Buffers, last []byte) error {
	if len(parts) == 0 {
		_, err := to.Write(last)
		return err
	}
	parts = append(parts, last)
	_, err := parts.WriteTo(to)
	return err
}
