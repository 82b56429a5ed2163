// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"
)

// chainIDSize is the size of the name of a chain in bytes, which lines have in hexadecimal digits.
const chainIDSize = 16

// The ends of lines. The hash covers the text before hashField.
const (
	sequenceField = "audit.sequence"
	hashField     = `,"audit.hash":"`
	lineEnd       = "\"}\n"
)

// chain appends the sequence number and the hash to the beginnings of lines. The caller keeps a
// copy of the chain, and returns to the copy if the lines cannot be written.
type chain struct {
	id     string // 32 hex digits
	broker []byte // attributes of each line
	next   uint64
	hash   [sha256.Size]byte
	// unsigned is the number of lines since the last checkpoint.
	unsigned int
	// signer is the key of the checkpoints, only for a [Verifier].
	signer crypto.PublicKey
}

// newChain returns a chain with a random name. Each line has the attributes.
func newChain(attributes []byte) chain {
	var id [chainIDSize]byte
	_, _ = rand.Read(id[:]) // it never fails
	c := chain{id: hex.EncodeToString(id[:])}
	c.broker = append(appendText(nil, "audit.chain", c.id), attributes...)
	return c
}

// add appends the line that begins with start.
func (c *chain) add(out, start []byte) []byte {
	from := len(out)
	out = append(out, start...)
	out = appendNumber(out, sequenceField, int64(c.next)) //nolint:gosec // no broker lives for 2^63 calls
	c.hash = hashOf(c.hash, out[from:])
	c.next++
	c.unsigned++
	out = append(out, hashField...)
	out = hex.AppendEncode(out, c.hash[:])
	return append(out, lineEnd...)
}

// hashOf returns the hash of a line, which is its text up to the hash.
func hashOf(before [sha256.Size]byte, text []byte) (hash [sha256.Size]byte) {
	h := sha256.New()
	h.Write(before[:])
	h.Write(text)
	h.Sum(hash[:0])
	return hash
}

// checkpoint appends a line with a signature of all lines before it. The event is "checkpoint",
// or "end" if no line follows.
func (c *chain) checkpoint(out []byte, event string, now time.Time, signer crypto.Signer) ([]byte, error) {
	signature, err := sign(signer, c.statement())
	if err != nil {
		return out, fmt.Errorf("sign a checkpoint of the audit log: %w", err)
	}
	line := appendHead(nil, event, now, c.broker)
	line = appendText(line, "signature", base64.StdEncoding.EncodeToString(signature))
	out = c.add(out, line)
	c.unsigned = 0
	return out, nil
}

// lostLine returns the beginning of a line that says how many records were lost. It also follows a write
// that failed, so that a verifier accepts a part of a line before it. Then the number may be 0.
func (c *chain) lostLine(now time.Time, records uint64) []byte {
	return appendNumber(appendHead(nil, "lost", now, c.broker), "records", int64(records)) //nolint:gosec // no broker lives for 2^63 calls
}

// statement returns the text that a checkpoint signs: the name of the chain, the number of lines,
// and the hash of the last line.
func (c *chain) statement() []byte {
	text := append([]byte("crypto-broker audit checkpoint 1\n"), c.id...)
	text = binary.BigEndian.AppendUint64(text, c.next)
	return append(text, c.hash[:]...)
}

// sign signs with Ed25519, or with ECDSA and SHA-256.
func sign(signer crypto.Signer, statement []byte) ([]byte, error) {
	return crypto.SignMessage(signer, rand.Reader, statement, hashFor(signer.Public()))
}

// publicKeyText returns a public key as base64 of its SubjectPublicKeyInfo in DER (RFC 5280,
// section 4.1.2.7).
func publicKeyText(public crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	return base64.StdEncoding.EncodeToString(der), err
}
