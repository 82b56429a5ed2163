// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
)

// small is a size of segments that makes short streams long. The first segment has 8 bytes of
// plaintext, and the others have 48.
const small = 64

func random(size int) []byte {
	data := make([]byte, size)
	_, _ = rand.Read(data) // never returns an error
	return data
}

// encrypt returns the stream of data that is written in parts of a size.
func encrypt(t *testing.T, segmentSize, part int, key, additional, data []byte) []byte {
	t.Helper()
	var stream bytes.Buffer
	e, err := newEncrypter(&stream, key, additional, segmentSize)
	if err != nil {
		t.Fatal(err)
	}
	for chunk := range slices.Chunk(data, part) {
		if n, err := e.Write(chunk); n != len(chunk) || err != nil {
			t.Fatalf("wrote %d of %d bytes with the error %v", n, len(chunk), err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return stream.Bytes()
}

// decrypt returns what a decrypter writes, and its error.
func decrypt(t *testing.T, segmentSize, part int, key, additional, stream []byte) ([]byte, error) {
	t.Helper()
	var plaintext bytes.Buffer
	d, err := newDecrypter(&plaintext, key, additional, segmentSize)
	if err != nil {
		t.Fatal(err)
	}
	for chunk := range slices.Chunk(stream, part) {
		if _, err := d.Write(chunk); err != nil {
			if closed := d.Close(); !errors.Is(closed, err) {
				t.Errorf("Write returned the error %v, and then Close %v", err, closed)
			}
			return plaintext.Bytes(), err
		}
	}
	err = d.Close()
	return plaintext.Bytes(), err
}

func TestAStreamIsTheSameAfterItWasEncryptedAndDecrypted(t *testing.T) {
	key := random(KeySize)
	for _, size := range []int{0, 1, 7, 8, 9, 55, 56, 57, 103, 104, 105, 104 + 48, 1000} {
		for _, part := range []int{1, 7, small, 2000} {
			t.Run(fmt.Sprintf("%d bytes in parts of %d", size, part), func(t *testing.T) {
				data := random(size)
				stream := encrypt(t, small, part, key, []byte("additional"), data)
				// One segment for the first 8 bytes, another for each 48 bytes after them.
				want := size + HeaderSize + TagSize*(1+(max(size, 8)-8+47)/48)
				if len(stream) != want {
					t.Errorf("found a stream of %d bytes, want %d", len(stream), want)
				}
				got, err := decrypt(t, small, part, key, []byte("additional"), stream)
				if err != nil || !bytes.Equal(got, data) {
					t.Errorf("found %d bytes and the error %v", len(got), err)
				}
			})
		}
	}
}

func TestALargeStreamOfTheRealSegmentSize(t *testing.T) {
	key, size := random(KeySize), algorithm.AES256GCMHKDF64KB.SegmentSize()
	for sentence, length := range map[string]int{
		"one segment that is full":  size - HeaderSize - TagSize,
		"two segments, both full":   2*(size-TagSize) - HeaderSize,
		"two segments and one byte": 2*(size-TagSize) - HeaderSize + 1,
		"some segments":             5*size + 17,
	} {
		t.Run(sentence, func(t *testing.T) {
			data := random(length)
			var stream, plaintext bytes.Buffer
			e, err := NewEncrypter(&stream, key, nil)
			if err != nil {
				t.Fatal(err)
			}
			d, err := NewDecrypter(&plaintext, key, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Write(data); err != nil {
				t.Fatal(err)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Write(stream.Bytes()); err != nil {
				t.Fatal(err)
			}
			if err := d.Close(); err != nil || !bytes.Equal(plaintext.Bytes(), data) {
				t.Errorf("found %d bytes and the error %v", plaintext.Len(), err)
			}
		})
	}
}

// segmentsOf cuts a stream into its header with the first segment, and the other segments.
func segmentsOf(stream []byte) [][]byte {
	var parts [][]byte
	for chunk := range slices.Chunk(stream, small) {
		parts = append(parts, bytes.Clone(chunk))
	}
	return parts
}

func TestAStreamThatWasChangedDoesNotDecrypt(t *testing.T) {
	key, additional := random(KeySize), []byte("additional")
	data := random(8 + 3*48 + 10)
	stream := encrypt(t, small, small, key, additional, data)
	another := encrypt(t, small, small, key, additional, data)
	full := encrypt(t, small, small, key, additional, data[:8+3*48])
	join := slices.Concat[[]byte]
	s, o, f := segmentsOf(stream), segmentsOf(another), segmentsOf(full)
	if len(s) != 5 || len(f) != 4 {
		t.Fatalf("found streams of %d and %d segments", len(s), len(f))
	}
	cases := map[string]struct {
		stream []byte
		want   error
	}{
		"two segments swapped":                {join(s[0], s[2], s[1], s[3], s[4]), ErrAuthentication},
		"a segment repeated":                  {join(s[0], s[1], s[1], s[2], s[3], s[4]), ErrAuthentication},
		"a segment repeated and one left out": {join(s[0], s[1], s[1], s[3], s[4]), ErrAuthentication},
		"a segment left out":                  {join(s[0], s[2], s[3], s[4]), ErrAuthentication},
		"the first segment left out":          {join(s[0][:HeaderSize], s[1], s[2], s[3], s[4]), ErrAuthentication},
		"the last segment two times":          {join(stream, s[4]), ErrAuthentication},
		"the last segment only":               {join(s[0][:HeaderSize], s[4]), ErrAuthentication},
		"the last segment moved":              {join(s[0], s[4]), ErrAuthentication},
		"a segment of another stream":         {join(s[0], s[1], o[2], s[3], s[4]), ErrAuthentication},
		"the end of another stream":           {join(s[0], s[1], s[2], s[3], o[4]), ErrAuthentication},
		"the header of another stream":        {join(o[0][:HeaderSize], s[0][HeaderSize:], s[1], s[2], s[3], s[4]), ErrAuthentication},
		"another stream behind it":            {join(stream, another), ErrAuthentication},
		"another stream behind a full one":    {join(full, another), ErrAuthentication},
		"one byte behind it":                  {join(stream, []byte{0}), ErrAuthentication},
		"one byte behind a full one":          {join(full, []byte{0}), ErrAuthentication},
		"a byte in front":                     {join([]byte{HeaderSize}, stream), ErrAuthentication},
		"nothing":                             {nil, ErrTruncated},
		"the header alone":                    {stream[:HeaderSize], ErrTruncated},
		"the last segment cut off":            {join(s[0], s[1], s[2], s[3]), ErrTruncated},
		"all but the first segment cut off":   {s[0], ErrTruncated},
	}
	for at := range stream {
		changed := bytes.Clone(stream)
		changed[at] ^= 1
		cases[fmt.Sprintf("byte %d changed", at)] = struct {
			stream []byte
			want   error
		}{changed, ErrAuthentication}
		want := ErrAuthentication
		if rest := at % small; at <= HeaderSize+TagSize || rest < TagSize {
			want = nil // either error is right
		}
		cases[fmt.Sprintf("cut after %d bytes", at)] = struct {
			stream []byte
			want   error
		}{stream[:at], want}
	}
	for sentence, test := range cases {
		got, err := decrypt(t, small, 50, key, additional, test.stream)
		if err == nil || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: found the error %v, want %v", sentence, err, test.want)
		}
		if !bytes.HasPrefix(data, got) {
			t.Errorf("%s: found plaintext that was never encrypted", sentence)
		}
	}
}

func TestAStreamDoesNotDecryptWithAnotherKeyOrAdditionalData(t *testing.T) {
	key := random(KeySize)
	stream := encrypt(t, small, small, key, []byte("additional"), random(100))
	for sentence, test := range map[string]struct{ key, additional []byte }{
		"another key":             {random(KeySize), []byte("additional")},
		"other additional data":   {key, []byte("Additional")},
		"no additional data":      {key, nil},
		"shorter additional data": {key, []byte("additiona")},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got, err := decrypt(t, small, small, test.key, test.additional, stream); !errors.Is(err, ErrAuthentication) || len(got) > 0 {
				t.Errorf("found %d bytes and the error %v, want ErrAuthentication", len(got), err)
			}
		})
	}
}

func TestTwoStreamsOfTheSameDataHaveNothingInCommon(t *testing.T) {
	key, data := random(KeySize), make([]byte, 8+2*48)
	one, two := encrypt(t, small, small, key, nil, data), encrypt(t, small, small, key, nil, data)
	for at := 1; at+16 <= len(one); at += 16 {
		if bytes.Contains(two, one[at:at+16]) {
			t.Errorf("the bytes from %d on are in both streams", at)
		}
	}
}

func TestKeysOfOtherSizesAreRefused(t *testing.T) {
	for _, size := range []int{0, 16, 31, 33, 64} {
		want := fmt.Sprintf("has %d bytes, expected the 32 of aes256-gcm-hkdf-64kb", size)
		if _, err := NewEncrypter(new(bytes.Buffer), random(size), nil); err == nil || err.Error() != want {
			t.Errorf("found the error %v, want %s", err, want)
		}
		if _, err := NewDecrypter(new(bytes.Buffer), random(size), nil); err == nil || err.Error() != want {
			t.Errorf("found the error %v, want %s", err, want)
		}
	}
}

func TestTheCounterOfSegmentsNeverBeginsAgain(t *testing.T) {
	key := random(KeySize)
	var stream bytes.Buffer
	e, err := newEncrypter(&stream, key, nil, small)
	if err != nil {
		t.Fatal(err)
	}
	e.segments.next = maxSegments - 1
	if _, err := e.Write(random(8)); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Write(random(49)); !errors.Is(err, ErrTooLong) {
		t.Errorf("found the error %v, want ErrTooLong", err)
	}
	if err := e.Close(); !errors.Is(err, ErrTooLong) {
		t.Errorf("Close returned the error %v, want ErrTooLong", err)
	}
}

// failing is a writer that fails after some writes.
type failing struct{ left int }

var errFull = errors.New("the disk is full")

func (f *failing) Write(data []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, errFull
	}
	return len(data), nil
}

func TestAnErrorOfTheWriterEndsTheStream(t *testing.T) {
	key, data := random(KeySize), random(500)
	stream := encrypt(t, small, small, key, nil, data)
	if _, err := newEncrypter(&failing{}, key, nil, small); !errors.Is(err, errFull) {
		t.Errorf("the header: found the error %v", err)
	}
	e, err := newEncrypter(&failing{2}, key, nil, small)
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDecrypter(&failing{2}, key, nil, small)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := e.Write(data); !errors.Is(err, errFull) {
			t.Errorf("encryption: found the error %v", err)
		}
		if _, err := d.Write(stream); !errors.Is(err, errFull) {
			t.Errorf("decryption: found the error %v", err)
		}
	}
	if err := errors.Join(e.Close(), d.Close()); !errors.Is(err, errFull) {
		t.Errorf("Close returned the error %v", err)
	}
}

// stream is what encrypters and decrypters have in common.
type stream interface {
	Close() error
	Abort()
}

func TestAClosedStreamTakesNothingMore(t *testing.T) {
	key, data := random(KeySize), random(500)
	whole := encrypt(t, small, small, key, nil, data)
	for _, end := range []func(stream) error{stream.Close, func(s stream) error { s.Abort(); return nil }} {
		var encrypted, plaintext bytes.Buffer
		e, err := newEncrypter(&encrypted, key, nil, small)
		if err != nil {
			t.Fatal(err)
		}
		d, err := newDecrypter(&plaintext, key, nil, small)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = e.Write(data)
		_, _ = d.Write(whole)
		if err := errors.Join(end(e), end(d)); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Write(data); !errors.Is(err, ErrClosed) {
			t.Errorf("encryption: found the error %v, want ErrClosed", err)
		}
		if _, err := d.Write(whole); !errors.Is(err, ErrClosed) {
			t.Errorf("decryption: found the error %v, want ErrClosed", err)
		}
		if left := slices.Concat(e.buffer[:cap(e.buffer)], d.plaintext[:cap(d.plaintext)], d.key); !bytes.Equal(left, make([]byte, len(left))) {
			t.Error("plaintext or key is left in a buffer")
		}
	}
}

func TestAnAbortedStreamDoesNotDecrypt(t *testing.T) {
	key := random(KeySize)
	var stream bytes.Buffer
	e, err := newEncrypter(&stream, key, nil, small)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Write(random(8 + 48 + 1)); err != nil {
		t.Fatal(err)
	}
	e.Abort()
	if _, err := decrypt(t, small, small, key, nil, stream.Bytes()); !errors.Is(err, ErrTruncated) {
		t.Errorf("found the error %v, want ErrTruncated", err)
	}
}

// ofTink returns a stream that tink-go v2.9.0 encrypted with segments of 64 bytes, a key of
// zeros and the additional data "additional", and its plaintext.
func ofTink(t testing.TB) (stream, plaintext []byte) {
	t.Helper()
	text, err := os.ReadFile("testdata/tink.hex")
	if err != nil {
		t.Fatal(err)
	}
	if stream, err = hex.DecodeString(strings.Join(strings.Fields(string(text)), "")); err != nil {
		t.Fatal(err)
	}
	return stream, bytes.Repeat([]byte("data"), 40)
}

// Streams that were stored have to stay readable.
func TestAStreamOfAnotherImplementationDecrypts(t *testing.T) {
	stream, want := ofTink(t)
	got, err := decrypt(t, small, small, make([]byte, KeySize), []byte("additional"), stream)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("found %q and the error %v", got, err)
	}
}

func FuzzDecrypt(f *testing.F) {
	whole, data := ofTink(f)
	f.Add(whole, 1)
	f.Add(whole[:small], 64)
	f.Add(whole[:small+17], 7)
	f.Fuzz(func(t *testing.T, hostile []byte, part int) {
		got, err := decrypt(t, small, max(1, part), make([]byte, KeySize), []byte("additional"), hostile)
		if err == nil && !bytes.Equal(hostile, whole) {
			t.Error("a stream decrypts that was never encrypted")
		}
		if !bytes.HasPrefix(data, got) {
			t.Error("found plaintext that was never encrypted")
		}
	})
}
