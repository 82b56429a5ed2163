// SPDX-License-Identifier: Apache-2.0

package signed

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

const (
	// FileName is the name of the signature file, beside Profiles.yaml.
	FileName = "Profiles.sig"
	// MaxFileSize is the largest signature file, in bytes.
	MaxFileSize = 64 << 10
	// MaxSignatures is the maximum number of signatures of an envelope, and of keys of a Trust.
	MaxSignatures = 16
	// PayloadType is the type of the statement in the envelope.
	PayloadType = "application/vnd.crypto-broker.profiles.v1+json"
)

// envelope is a DSSE envelope in its JSON form.
type envelope struct {
	PayloadType string      `json:"payloadType"`
	Payload     []byte      `json:"payload"`
	Signatures  []signature `json:"signatures"`
}

type signature struct {
	KeyID string `json:"keyid"`
	Sig   []byte `json:"sig"`
}

// Sign signs a statement with each of 1 to 16 different keys, and returns the content of the
// signature file. It sets the format of the statement, and converts its time to UTC. The
// same statement and keys give the same bytes.
func Sign(s Statement, keys ...ed25519.PrivateKey) ([]byte, error) {
	if len(keys) == 0 || len(keys) > MaxSignatures {
		return nil, fmt.Errorf("sign profiles with %d keys: expected 1 to %d", len(keys), MaxSignatures)
	}
	s.Format = Format
	s.Time = s.Time.UTC().Round(0)
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("sign profiles: the statement %w", err)
	}
	payload, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("sign profiles: %w", err)
	}
	e := envelope{PayloadType: PayloadType, Payload: payload}
	message := preAuthenticationEncoding(PayloadType, payload)
	for i, key := range keys {
		if len(key) != ed25519.PrivateKeySize {
			return nil, fmt.Errorf("sign profiles: key %d has %d bytes, expected %d", i+1, len(key), ed25519.PrivateKeySize)
		}
		public, _ := key.Public().(ed25519.PublicKey)
		e.Signatures = append(e.Signatures, signature{KeyID(public), ed25519.Sign(key, message)})
	}
	if err := e.checkSignatures(); err != nil {
		return nil, fmt.Errorf("sign profiles: the envelope %w", err)
	}
	data, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("sign profiles: %w", err)
	}
	return append(data, '\n'), nil
}

// Read returns the statement of a signature file, and the ids of the keys in its signatures. It
// does not verify the signatures, so the result is only for reports and must not be used for a
// decision.
func Read(signature []byte) (Statement, []string, error) {
	e, err := readEnvelope(signature)
	if err != nil {
		return Statement{}, nil, err
	}
	s, err := readStatement(e.Payload)
	if err != nil {
		return Statement{}, nil, err
	}
	return s, e.keyIDs(), nil
}

func readEnvelope(data []byte) (envelope, error) {
	var e envelope
	switch {
	case len(data) == 0:
		return e, fmt.Errorf("%s is empty, expected a signature envelope", FileName)
	case len(data) > MaxFileSize:
		return e, fmt.Errorf("%s has more than %d bytes, expected a smaller signature envelope", FileName, MaxFileSize)
	}
	if err := decode(data, &e, "payloadType, payload and signatures, each with keyid and sig"); err != nil {
		return envelope{}, fmt.Errorf("%s %w", FileName, err)
	}
	if e.PayloadType != PayloadType {
		return envelope{}, fmt.Errorf("%s has the payload type %s, expected %q", FileName, quote(e.PayloadType), PayloadType)
	}
	if err := e.checkSignatures(); err != nil {
		return envelope{}, fmt.Errorf("%s %w", FileName, err)
	}
	return e, nil
}

func (e *envelope) checkSignatures() error {
	if n := len(e.Signatures); n == 0 || n > MaxSignatures {
		return fmt.Errorf("has %d signatures, expected 1 to %d", n, MaxSignatures)
	}
	seen := map[string]bool{}
	for _, s := range e.Signatures {
		if seen[s.KeyID] {
			return fmt.Errorf("has two signatures with the key id %s, expected one signature for each key", quote(s.KeyID))
		}
		seen[s.KeyID] = true
		if len(s.Sig) != ed25519.SignatureSize {
			return fmt.Errorf("has a signature of %d bytes with the key id %s, expected the %d of Ed25519", len(s.Sig), quote(s.KeyID), ed25519.SignatureSize)
		}
	}
	return nil
}

func (e *envelope) keyIDs() []string {
	ids := make([]string, 0, len(e.Signatures))
	for _, s := range e.Signatures {
		ids = append(ids, s.KeyID)
	}
	return ids
}

// preAuthenticationEncoding returns the bytes that a DSSE signature signs.
func preAuthenticationEncoding(payloadType string, payload []byte) []byte {
	message := []byte("DSSEv1 ")
	message = strconv.AppendInt(message, int64(len(payloadType)), 10)
	message = append(message, ' ')
	message = append(message, payloadType...)
	message = append(message, ' ')
	message = strconv.AppendInt(message, int64(len(payload)), 10)
	message = append(message, ' ')
	return append(message, payload...)
}

// decode reads a JSON object. It refuses an object that encoding/json would write in another way,
// except for white space between its parts. encoding/json itself accepts repeated fields, and
// names in upper case.
func decode(data []byte, into any, fields string) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("it ends too early")
		}
		return fmt.Errorf("is not as expected, a JSON object with %s: %w", fields, err)
	}
	var found bytes.Buffer
	if err := json.Compact(&found, data); err != nil {
		return fmt.Errorf("is not as expected, one JSON object with %s: %w", fields, err)
	}
	canonical, err := json.Marshal(into)
	if err != nil {
		return fmt.Errorf("cannot be written again to compare its spelling: %w", err)
	}
	if !bytes.Equal(found.Bytes(), canonical) {
		return fmt.Errorf("does not have its only valid spelling, expected %s, in this order and each once", fields)
	}
	return nil
}

// maxQuoted is the maximum number of bytes of a text in a file that a message quotes.
const maxQuoted = 128

func quote(text string) string {
	if len(text) <= maxQuoted {
		return strconv.Quote(text)
	}
	end := maxQuoted
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strconv.Quote(text[:end]) + "…"
}
