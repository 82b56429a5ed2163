// SPDX-License-Identifier: Apache-2.0

package kmip

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/ovh/kmip-go"
	"github.com/ovh/kmip-go/ttlv"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// isTyped reports whether an error is one that the broker has a status for.
func isTyped(err error) bool {
	for _, kind := range []error{keys.ErrUnavailable, keys.ErrNotFound, keys.ErrDenied, keys.ErrUnusable} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// Each byte of each reply is changed in turn. If the server announces more bytes than it sends, it closes the connection.
func TestAReplyWithAChangedByteIsAnErrorOrAKey(t *testing.T) {
	t.Parallel()
	for _, placeholder := range []string{"found", ""} {
		for _, value := range []func(byte) byte{
			func(b byte) byte { return b ^ 1 }, func(b byte) byte { return ^b }, func(byte) byte { return 0 },
		} {
			for at := 0; changed(t, placeholder, at, value); at++ {
			}
		}
	}
}

// changed asks a server for a key, and changes one byte of the server's replies. It reports false if the replies are shorter than that.
func changed(t *testing.T, placeholder string, at int, value func(byte) byte) bool {
	t.Helper()
	m := &memory{placeholder: placeholder, objects: []*stored{aes("a", "key", 1), aes("b", "other", 1)}}
	s := m.session(t)
	s.traits.ignoresPlaceholder.Store(placeholder != "found")
	sent, short := 0, false
	m.change = func(reply []byte) []byte {
		if in := at - sent; in >= 0 && in < len(reply) {
			reply[in] = value(reply[in])
			short = in >= 4 && in < headerSize
		}
		sent += len(reply)
		return reply
	}
	m.closed = func() bool { return short }
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	key, err := new(Provider).findIn(ctx, s, keys.Name{ID: "key"}, nil)
	if ctx.Err() != nil {
		t.Fatalf("byte %d: the reply was waited for until the end", at)
	}
	if err == nil && key == nil || err != nil && !isTyped(err) {
		t.Errorf("byte %d: found the key %v and the error %v, want a key or an error of package keys", at, key, err)
	}
	s.Close()
	return at < sent
}

// hostile returns a session with a server that answers the first request with these bytes.
func hostile(t *testing.T, reply []byte) *Session {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		go func() { _, _ = io.Copy(io.Discard, theirs) }() // until the end of the test
		_, _ = theirs.Write(reply)
	}()
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return &Session{address: "hostile", conn: ours, version: kmip.V1_4, traits: new(traits)}
}

func TestAReplyThatIsTooLargeIsNotRead(t *testing.T) {
	reply := binary.BigEndian.AppendUint32([]byte{0x42, 0x00, 0x7B, structure}, 1<<31)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := hostile(t, reply).Get(t.Context(), "key")
	runtime.ReadMemStats(&after)
	if !errors.Is(err, keys.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	if more := after.TotalAlloc - before.TotalAlloc; more > maxMessage {
		t.Errorf("%d bytes were allocated", more)
	}
}

func TestAReplyThatDoesNotEndIsGivenUpWithTheContext(t *testing.T) {
	reply := binary.BigEndian.AppendUint32([]byte{0x42, 0x00, 0x7B, structure}, 1000)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := hostile(t, reply).Get(ctx, "key"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the error of the context", err)
	}
}

// A decoder that calls itself for each level would use up the stack, which ends a process.
func TestAReplyOfManyLevelsEndsNothing(t *testing.T) {
	legitimate := ttlv.MarshalTTLV(&kmip.ResponseMessage{
		Header:    kmip.ResponseHeader{ProtocolVersion: kmip.V1_4, TimeStamp: time.Unix(1, 0), BatchCount: 1},
		BatchItem: []kmip.ResponseBatchItem{{Operation: kmip.Operation(0x7FFFFFFF), ResponsePayload: kmip.NewUnknownPayload(kmip.Operation(0x7FFFFFFF), ttlv.Value{Tag: 0x540001, Value: ttlv.Struct{}})}},
	})
	levels := (maxMessage - len(legitimate)) / headerSize
	nested := make([]byte, levels*headerSize)
	for level := range levels {
		item := nested[level*headerSize:]
		copy(item, []byte{0x54, 0x00, 0x01, structure})
		binary.BigEndian.PutUint32(item[4:], uint32((levels-level-1)*headerSize)) //nolint:gosec // at most a message
	}
	// The innermost structures of the valid reply are empty. The test fills them with nested structures.
	reply := slices.Concat(legitimate, nested)
	for _, at := range lengths(t, legitimate) {
		binary.BigEndian.PutUint32(reply[at:], binary.BigEndian.Uint32(reply[at:])+uint32(len(nested))) //nolint:gosec // at most a message
	}
	if _, err := hostile(t, reply).Get(t.Context(), "key"); !isTyped(err) {
		t.Errorf("got %v, want an error of package keys", err)
	}
}

// lengths returns the positions of the lengths of all structures that contain the end of a message.
func lengths(t *testing.T, message []byte) []int {
	t.Helper()
	var all []int
	for at := 0; at+headerSize <= len(message); {
		size := int(binary.BigEndian.Uint32(message[at+4:]))
		if message[at+3] != structure {
			at += headerSize + (size+7)/8*8
			continue
		}
		if at+headerSize+size == len(message) {
			all = append(all, at+4)
			at += headerSize
			continue
		}
		at += headerSize + size
	}
	return all
}

func FuzzReply(f *testing.F) {
	for _, placeholder := range []string{"found", ""} {
		m := &memory{placeholder: placeholder, objects: []*stored{aes("a", "key", 1)}}
		m.change = func(reply []byte) []byte {
			f.Add(append([]byte{}, reply...))
			return reply
		}
		s := m.session(f)
		s.traits.ignoresPlaceholder.Store(placeholder != "found")
		if _, err := new(Provider).findIn(f.Context(), s, keys.Name{ID: "key"}, nil); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, reply []byte) {
		if len(reply) < headerSize {
			return
		}
		// Other headers are refused before anything is decoded.
		reply = slices.Concat(binary.BigEndian.AppendUint32([]byte{0x42, 0x00, 0x7B, structure}, uint32(len(reply)-headerSize)), reply[headerSize:]) //nolint:gosec // at most a message
		m := &memory{change: func([]byte) []byte { return reply }, closed: func() bool { return true }}
		key, err := new(Provider).findIn(t.Context(), m.session(t), keys.Name{ID: "key"}, nil)
		if err == nil && key == nil || err != nil && !isTyped(err) {
			t.Errorf("found the key %v and the error %v, want a key or an error of package keys", key, err)
		}
	})
}
