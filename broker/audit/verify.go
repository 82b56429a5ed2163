// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
)

// maxUnsigned is the maximum number of lines without a checkpoint that a broker can leave. It
// writes the lines of a batch together with their checkpoint, so a kill or a full disk may leave
// a batch without its checkpoint. No record is shorter than 200 bytes.
const maxUnsigned = checkpointLines + maxQueue/200

// Verifier checks a log line by line. A log may be in several files, oldest first.
type Verifier struct {
	key    crypto.PublicKey // nil to take the keys that the log names
	report Report
	chain  *chain // nil before the first line
	torn   string // the place of the first partial line after which no line start, continue or lost has come yet
	// missingStart is the error to return if the log ends or goes on without the start of a chain or
	// of a file after torn. It is nil inside of a chain.
	missingStart error
	ended        bool
	lines        int // of the file
	file         string
	// ends are the hashes of the last lines of the chains in a [Collected].
	ends map[string]bool
}

// Report is the result of a verification.
type Report struct {
	// Chains is the number of runs of brokers, and Records is the number of their records.
	Chains, Records int
	// Checkpoints is the number of signatures that were checked.
	Checkpoints int
	// Lost is the number of calls that have no record, as the log says itself.
	Lost uint64
	// Unsigned is the number of lines that no checkpoint signs.
	Unsigned int
	// Keys are the public keys of the checkpoints, as base64 of their SubjectPublicKeyInfo.
	Keys []string
	// Notes are remarks for an auditor about a log that is not damaged.
	Notes []string
}

// DamageError says where a log is damaged.
type DamageError struct {
	File string
	Line int
	// Problem continues the sentence "line 17 of audit.jsonl …".
	Problem string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("line %d of %s %s", e.Line, e.File, e.Problem)
}

// NewVerifier returns a verifier. If key is not nil, it must have signed all checkpoints. Without
// a key, a verifier cannot find out whether somebody replaced the whole log.
func NewVerifier(key crypto.PublicKey) *Verifier { return &Verifier{key: key} }

// Read checks the next file of the log. The error is a *DamageError if the log is damaged.
func (v *Verifier) Read(file string, text io.Reader) error {
	v.file, v.lines = file, 0
	reader := bufio.NewReaderSize(text, maxLine)
	for {
		part, err := reader.ReadSlice('\n')
		if len(part) > 0 {
			v.lines++
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return v.damaged("is longer than %d bytes, and no record is so long", maxLine)
		case errors.Is(err, io.EOF) && len(part) == 0:
			if v.lines == 0 {
				v.note("%s is empty: no record was written to it yet, or somebody emptied it, and the log cannot say which", file)
			}
			return v.missingStart
		case errors.Is(err, io.EOF):
			v.torn = v.place()
			return v.missingStart
		case err != nil:
			return fmt.Errorf("read %s: %w", file, err)
		}
		if err := v.line(bytes.TrimSuffix(part, []byte("\n"))); err != nil {
			return err
		}
	}
}

func (v *Verifier) place() string { return fmt.Sprintf("line %d of %s", v.lines, v.file) }

func (v *Verifier) damaged(problem string, arguments ...any) error {
	return &DamageError{v.file, v.lines, fmt.Sprintf(problem, arguments...)}
}

func (v *Verifier) line(text []byte) error {
	l, err := parseLine(text)
	if err != nil {
		if v.chain == nil || v.ended {
			v.missingStart = cmp.Or(v.missingStart, v.damaged("%v", err))
		}
		v.torn = cmp.Or(v.torn, v.place()) // valid only before a start, or after writes that failed
		return nil
	}
	if v.torn != "" && l.fields.Event != "start" && l.fields.Event != "continue" && l.fields.Event != "lost" {
		return v.damaged("continues after %s, which is not a complete line", v.torn)
	}
	v.missingStart = nil
	switch l.fields.Event {
	case "start":
		err = v.start(l)
	case "continue":
		err = v.goOn(l)
	default:
		err = v.follow(l)
	}
	if err != nil {
		return err
	}
	switch l.fields.Event {
	case "start", "checkpoint":
	case "continue":
		v.noteTorn()
	case "lost":
		v.noteTorn()
		v.report.Lost += l.fields.Records
	case "end":
		v.ended = true
	default:
		v.report.Records++
	}
	return nil
}

// start begins a chain.
func (v *Verifier) start(l *line) error {
	switch previous := l.fields.Previous; {
	case v.chain == nil && previous != "" && !v.ends[previous]:
		v.note("the log has an older part, which was not checked")
	case v.chain == nil:
	case previous == "":
		v.note("%s begins a chain that does not name the chain before it, as in logs on standard error", v.place())
	case previous != hex.EncodeToString(v.chain.hash[:]):
		return v.damaged("begins a chain that does not follow the line before it: lines are missing, or were moved or changed")
	}
	v.leave()
	if l.fields.Sequence != 0 {
		return v.damaged("begins a chain with the number %d, expected 0", l.fields.Sequence)
	}
	v.report.Chains++
	v.chain = &chain{id: l.fields.Chain}
	return v.follow(l)
}

// goOn begins a file that continues a chain.
func (v *Verifier) goOn(l *line) error {
	if v.chain != nil {
		return v.follow(l)
	}
	v.note("the log has an older part, which was not checked")
	v.report.Chains++
	v.chain = &chain{id: l.fields.Chain, next: l.fields.Sequence}
	return v.advance(l)
}

// follow checks that a line is the next one of its chain.
func (v *Verifier) follow(l *line) error {
	c := v.chain
	switch {
	case c == nil:
		return v.damaged("belongs to a chain whose beginning is missing")
	case v.ended:
		return v.damaged("follows the end of its chain")
	case l.fields.Chain != c.id:
		return v.damaged("belongs to the chain %q, expected %q", l.fields.Chain, c.id)
	case l.fields.Sequence != c.next:
		return v.damaged("has the number %d, expected %d: lines are missing, or were moved or added", l.fields.Sequence, c.next)
	case hashOf(c.hash, l.text) != l.hash:
		return v.damaged("was changed, or a line before it was")
	}
	return v.advance(l)
}

// advance checks the signature of a checkpoint, and takes the hash of a line.
func (v *Verifier) advance(l *line) error {
	c := v.chain
	if l.fields.PublicKey != "" {
		if err := v.learn(l.fields.PublicKey); err != nil {
			return err
		}
	}
	if l.fields.Event == "checkpoint" || l.fields.Event == "end" {
		if !verify(c.signer, c.statement(), l.fields.Signature) {
			return v.damaged("has a signature that does not belong to the lines before it")
		}
		v.report.Checkpoints++
		c.unsigned = -1 // the checkpoint itself is signed by the next one, and has nothing to protect
	}
	c.hash, c.next = l.hash, l.fields.Sequence+1
	if c.unsigned++; c.unsigned > maxUnsigned {
		return v.damaged("is one of more than %d lines that no checkpoint signs, expected a checkpoint after %d lines: no broker writes such a log", maxUnsigned, checkpointLines)
	}
	return nil
}

// learn stores the key of a chain from its first checkpoint.
func (v *Verifier) learn(text string) error {
	der, err := base64.StdEncoding.DecodeString(text)
	if err != nil || base64.StdEncoding.EncodeToString(der) != text { // base64 may have line feeds
		return v.damaged("has a public key that is not base64")
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err == nil {
		err = CheckKey(key)
	}
	if err != nil {
		return v.damaged("has a public key that cannot be used: %v", err)
	}
	if same, ok := v.key.(interface{ Equal(crypto.PublicKey) bool }); ok && !same.Equal(key) {
		return v.damaged("names another public key than the given one")
	}
	v.chain.signer = key
	if !slices.Contains(v.report.Keys, text) {
		v.report.Keys = append(v.report.Keys, text)
	}
	return nil
}

// leave notes what is missing at the end of a chain.
func (v *Verifier) leave() {
	v.noteTorn()
	if v.chain == nil {
		return
	}
	v.report.Unsigned += v.chain.unsigned
	if !v.ended {
		v.note("the chain %s has no end: its broker is still writing it, was killed, or the end was cut off", v.chain.id)
	}
	v.ended = false
}

func (v *Verifier) noteTorn() {
	if v.torn != "" {
		v.note("%s is not a complete line: the broker could not finish it", v.torn)
		v.torn = ""
	}
}

func (v *Verifier) note(text string, arguments ...any) {
	v.report.Notes = append(v.report.Notes, fmt.Sprintf(text, arguments...))
}

// Report returns the result. Call it once, after the last file.
func (v *Verifier) Report() Report {
	v.leave()
	return v.report
}
