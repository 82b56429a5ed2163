// SPDX-License-Identifier: Apache-2.0

package kmip

import (
	"bytes"
	"io"
	"testing"

	"github.com/ovh/kmip-go"
)

// keeping is a connection that remembers the buffers that it reads into and writes from.
type keeping struct {
	io.ReadWriter
	buffers [][]byte
}

func (k *keeping) Read(p []byte) (int, error) {
	k.buffers = append(k.buffers, p)
	return k.ReadWriter.Read(p)
}

func (k *keeping) Write(p []byte) (int, error) {
	k.buffers = append(k.buffers, p)
	return k.ReadWriter.Write(p)
}

func TestTheBuffersOfMessagesAreCleared(t *testing.T) {
	m := memory{objects: []*stored{aes("a", "key", 1)}}
	conn := &keeping{ReadWriter: m.session(t).conn}
	request := kmip.NewRequestMessage(kmip.V1_4, getRaw("a"))
	if reply, err := roundTrip(conn, &request); err != nil || len(reply.BatchItem) != 1 {
		t.Fatalf("found %v, %v", reply, err)
	}
	for _, buffer := range conn.buffers {
		if len(buffer) > headerSize && !bytes.Equal(buffer, make([]byte, len(buffer))) {
			t.Errorf("a buffer of %d bytes has what was sent or received", len(buffer))
		}
	}
}
