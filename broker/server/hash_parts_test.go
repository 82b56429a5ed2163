// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"slices"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

// inParts cuts bytes into parts of a size.
func inParts(wire []byte, size int) mem.BufferSlice {
	var data mem.BufferSlice
	for part := range slices.Chunk(wire, size) {
		data = append(data, mem.SliceBuffer(part))
	}
	return data
}

// bytesField is a field of bytes on the wire.
func bytesField(number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

// largeInput is one that is not joined; no two parts of it are equal.
var largeInput = func() []byte {
	var text []byte
	for n := uint64(1 << 40); len(text) < partedInput; n++ {
		text = protowire.AppendVarint(text, n)
	}
	return text
}()

func TestARequestWithALargeInputIsReadInPartsOfAnySize(t *testing.T) {
	metadata := bytesField(1, []byte("id"))
	wire := slices.Concat(bytesField(1, []byte("P")), bytesField(2, largeInput), bytesField(3, metadata), []byte{tagHashFormat, 1})
	for _, size := range []int{257, 4096, 16384, len(largeInput), len(wire)} {
		for _, m := range []proto.Message{&v0.HashDataRequest{}, &v1.HashDataRequest{}} {
			var in input
			beside, ok := readParts(inParts(wire, size), m, &in)
			if !ok {
				t.Fatalf("a %T in parts of %d bytes was left to be joined", m, size)
			}
			if joined := slices.Concat(in.parts...); !bytes.Equal(joined, largeInput) || in.size != len(largeInput) {
				t.Errorf("parts of %d bytes: found an input of %d bytes, want the %d that were sent", size, in.size, len(largeInput))
			}
			if got := retag(nil, beside, 3, 3); !bytes.Equal(got, bytesField(3, metadata)) {
				t.Errorf("parts of %d bytes: found the metadata %x", size, got)
			}
			switch m := m.(type) {
			case *v0.HashDataRequest:
				if m.GetProfile() != "P" || m.GetOutputFormat() != 1 {
					t.Errorf("read %v", m)
				}
			case *v1.HashDataRequest:
				if m.GetProfile() != "P" || m.GetOutputFormat() != 1 {
					t.Errorf("read %v", m)
				}
			}
		}
	}
}

func TestWhatIsNoUsualRequestWithALargeInputIsJoined(t *testing.T) {
	large := bytesField(2, largeInput)
	usual := slices.Concat(bytesField(1, []byte("P")), large)
	for name, test := range map[string]struct {
		wire    []byte
		size    int
		message proto.Message
	}{
		"a small input":                   {slices.Concat(bytesField(2, []byte("abc")), bytesField(1, largeInput)), 4096, &v1.HashDataRequest{}},
		"two large inputs":                {slices.Concat(usual, large), 4096, &v1.HashDataRequest{}},
		"a small input behind a large":    {slices.Concat(usual, bytesField(2, []byte("abc"))), 4096, &v1.HashDataRequest{}},
		"an input that ends too early":    {usual[:len(usual)-1], 4096, &v1.HashDataRequest{}},
		"a length that is no number":      {slices.Concat(usual, []byte{1<<3 | 2}, bytes.Repeat([]byte{0xff}, 11)), 4096, &v1.HashDataRequest{}},
		"a tag without a value":           {slices.Concat(usual, []byte{1<<3 | 2}), 4096, &v1.HashDataRequest{}},
		"large metadata":                  {slices.Concat(usual, bytesField(3, bytes.Repeat([]byte("m"), maxBeside+1))), 4096, &v1.HashDataRequest{}},
		"a field that nobody knows":       {slices.Concat(usual, bytesField(5, nil)), 4096, &v1.HashDataRequest{}},
		"a profile that is not ASCII":     {slices.Concat(bytesField(1, []byte{0xff}), large), 4096, &v1.HashDataRequest{}},
		"parts without number":            {usual, len(usual) / (maxParts + 1), &v1.HashDataRequest{}},
		"a request for something else":    {usual, 4096, &v1.EncryptDataRequest{}},
		"a format before formats existed": {slices.Concat(usual, []byte{tagHashFormat, 1}), 4096, &v0.HashRequest{}},
	} {
		t.Run(name, func(t *testing.T) {
			var in input
			if beside, ok := readParts(inParts(test.wire, test.size), test.message, &in); ok || beside != nil {
				t.Errorf("read with %x beside the input", beside)
			}
			if in.size != 0 || proto.Size(test.message) != 0 {
				t.Errorf("left an input of %d bytes and the message %v behind", in.size, test.message)
			}
		})
	}
}

// FuzzParts holds that a request reads the same in parts as joined.
func FuzzParts(f *testing.F) {
	f.Add([]byte{1<<3 | 2, 1, 'P'}, []byte{3<<3 | 2, 0}, uint16(4096))
	f.Add([]byte{1<<3 | 2, 1, 'P', 4 << 3, 1}, []byte{3<<3 | 2, 4, 1<<3 | 2, 2, 'i', 'd'}, uint16(700))
	f.Add([]byte{2<<3 | 2, 1, 'x'}, []byte{}, uint16(16384))
	f.Add([]byte{}, []byte{2<<3 | 2, 1, 'x'}, uint16(16384))
	f.Fuzz(func(t *testing.T, before, after []byte, size uint16) {
		wire := slices.Concat(before, bytesField(2, largeInput), after)
		var got, want v1.HashDataRequest
		var in input
		beside, ok := readParts(inParts(wire, max(1, int(size))), &got, &in)
		if !ok {
			return
		}
		if !readHash(wire, &want) {
			t.Fatal("joined, it is left to the library")
		}
		got.Input = slices.Concat(in.parts...)
		if !proto.Equal(&got, &want) {
			t.Error("joined, it reads as something else")
		}
		var echoed, sent v1.HashDataRequest
		if err := proto.Unmarshal(retag(nil, beside, 3, 3), &echoed); err != nil {
			t.Fatal(err)
		}
		if err := proto.Unmarshal(retag(nil, wire, 3, 3), &sent); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(&echoed, &sent) {
			t.Errorf("echoes %v, want %v", &echoed, &sent)
		}
	})
}
