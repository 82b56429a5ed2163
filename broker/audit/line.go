// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
)

// line is a line of a log.
type line struct {
	text   []byte // the text that the hash covers
	hash   [sha256.Size]byte
	fields struct {
		Time      string `json:"time"`
		Event     string `json:"event"`
		Chain     string `json:"audit.chain"`
		Sequence  uint64 `json:"audit.sequence"`
		PublicKey string `json:"public_key"`
		Previous  string `json:"previous"`
		Signature []byte `json:"signature"`
		Records   uint64 `json:"records"`
	}
}

var errNoLine = errors.New("is not a line of an audit log")

// parseLine reads a line without its line feed.
func parseLine(text []byte) (*line, error) {
	i := bytes.LastIndex(text, []byte(hashField))
	end := lineEnd[:len(lineEnd)-1]
	if i < 0 || len(text) != i+len(hashField)+2*sha256.Size+len(end) || !bytes.HasSuffix(text, []byte(end)) {
		return nil, errNoLine
	}
	l := &line{text: text[:i]}
	if _, err := hex.Decode(l.hash[:], text[i+len(hashField):len(text)-len(end)]); err != nil {
		return nil, errNoLine
	}
	if err := json.Unmarshal(text, &l.fields); err != nil {
		return nil, errNoLine
	}
	// Reports have the name of the chain, so it must not have control characters.
	if id, err := hex.DecodeString(l.fields.Chain); err != nil || len(id) != chainIDSize {
		return nil, errNoLine
	}
	return l, nil
}

// maxLine is the maximum size of a line in bytes, with its line feed.
const maxLine = 64 << 10

// ending describes the end of a file.
type ending struct {
	hash string // of the last whole line, empty if there is none
	torn bool   // whether the file ends with a part of a line
}

// endingOf returns the ending of a file. A part of a line may follow the last complete line.
func endingOf(file io.ReaderAt, size int64) (e ending, err error) {
	from := max(0, size-2*maxLine)
	text := make([]byte, size-from)
	if _, err := file.ReadAt(text, from); err != nil && !errors.Is(err, io.EOF) {
		return ending{}, err
	}
	e.torn = len(text) > 0 && text[len(text)-1] != '\n'
	for len(text) > 0 {
		i := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
		last, whole := bytes.CutSuffix(text[i:], []byte("\n"))
		if l, err := parseLine(last); whole && err == nil {
			e.hash = hex.EncodeToString(l.hash[:])
			return e, nil
		}
		text = text[:i]
	}
	return e, nil
}
