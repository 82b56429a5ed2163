// SPDX-License-Identifier: Apache-2.0

package algorithm

import "fmt"

// Stream is an algorithm that encrypts and authenticates data of any size in segments. The
// zero value is not an algorithm.
type Stream uint8

// AES256GCMHKDF64KB is the streaming AEAD AES-GCM-HKDF of Tink with AES-256, HKDF with SHA-256,
// and segments of 64 KiB. It follows STREAM of Hoang, Reyhanitabar, Rogaway and Vizár (IACR
// ePrint 2015/189). Hoang and Shen analysed its security (IACR ePrint 2020/1019).
const AES256GCMHKDF64KB Stream = iota + 1

// streamRow is the row of a stream in the registry.
type streamRow struct {
	name     string
	approval Approval
	// keySize is the size of keys in bits. The strength of a key is its size.
	keySize int
	// segmentSize is the size of an encrypted segment in bytes. Only the last one may be
	// smaller.
	segmentSize int
}

var streams = [...]streamRow{
	// FIPS 140-3 approves AES-GCM with counters as nonces if the module makes them. Module
	// v1.0.0 does not offer that for streams.
	AES256GCMHKDF64KB: {"aes256-gcm-hkdf-64kb", NotInModule, 256, 64 << 10},
}

// Streams returns the names of all streams.
func Streams() []string {
	var names []string
	for _, row := range streams[1:] {
		names = append(names, row.name)
	}
	return names
}

// String returns the name that profiles and replies have, in lower case.
func (s Stream) String() string { return streams[s].name }

// Approval returns the verdict of FIPS 140-3 on encryption with the stream. Decryption is always
// approved.
func (s Stream) Approval() Approval { return streams[s].approval }

// KeySize returns the size of keys in bits.
func (s Stream) KeySize() int { return streams[s].keySize }

// SegmentSize returns the size of an encrypted segment in bytes. Only the last one may be
// smaller.
func (s Stream) SegmentSize() int { return streams[s].segmentSize }

// Strength returns the strength of keys in bits. limit describes the key, for messages.
func (s Stream) Strength() (bits int, limit string) {
	return streams[s].keySize, fmt.Sprintf("AES-%d", streams[s].keySize)
}
