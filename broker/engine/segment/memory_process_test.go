// SPDX-License-Identifier: Apache-2.0

//go:build process

package segment_test

import (
	"runtime"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine/segment"
)

// count counts bytes.
type count int64

func (c *count) Write(data []byte) (int, error) {
	*c += count(len(data))
	return len(data), nil
}

// This counts all allocations, including memory that was freed again.
func TestAStreamOf256MiBNeedsLessThan1MiBOfMemory(t *testing.T) {
	const size, most = 256 << 20, 1 << 20
	key, part := make([]byte, segment.KeySize), make([]byte, 256<<10)
	var plaintext count
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d, err := segment.NewDecrypter(&plaintext, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := segment.NewEncrypter(d, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range size / len(part) {
		if _, err := e.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if plaintext != size {
		t.Errorf("found %d bytes of plaintext, want %d", plaintext, size)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > most {
		t.Errorf("encryption and decryption of %d bytes allocated %d bytes, want at most %d", size, used, most)
	} else {
		t.Logf("encryption and decryption of %d bytes allocated %d bytes", size, used)
	}
}
