// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// maxCollected is the maximum size in bytes of a line of a collector. A collector puts many log
// records into one line.
const maxCollected = 256 << 20

// Collected has the lines of audit logs as a collector stores them: from many brokers, in any
// order, with copies, and between lines of other logs. It keeps all lines in memory.
type Collected struct {
	chains map[string][]collectedLine
	// others is the number of lines that belong to other logs.
	others int
}

// collectedLine is a line, and where it was found.
type collectedLine struct {
	*line
	text   []byte
	file   string
	number int
}

// Read reads the lines of a file. Each line is a line of an audit log, or a request of OTLP in JSON whose
// log records have such lines as their bodies. The error is a *DamageError if a line was changed so that
// it is not a line of an audit log any more.
func (c *Collected) Read(file string, text io.Reader) error {
	reader := bufio.NewReaderSize(text, maxLine)
	for number := 1; ; number++ {
		found, err := readLine(reader)
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return fmt.Errorf("read line %d of %s: %w", number, file, err)
		}
		if len(found) > 0 {
			if err := c.take(file, number, found); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
	}
}

// readLine returns the next line without its line feed.
func readLine(reader *bufio.Reader) ([]byte, error) {
	var found []byte
	for {
		part, err := reader.ReadSlice('\n')
		found = append(found, part...)
		switch {
		case len(found) > maxCollected:
			return nil, fmt.Errorf("it is longer than %d bytes", maxCollected)
		case !errors.Is(err, bufio.ErrBufferFull):
			return bytes.TrimRight(found, "\r\n"), err
		}
	}
}

// exported has the fields of a request of OTLP in JSON that verification needs.
type exported struct {
	ResourceLogs []struct {
		ScopeLogs []struct {
			LogRecords []struct {
				Body struct {
					StringValue string `json:"stringValue"`
				} `json:"body"`
			} `json:"logRecords"`
		} `json:"scopeLogs"`
	} `json:"resourceLogs"`
}

func (c *Collected) take(file string, number int, text []byte) error {
	if !bytes.HasPrefix(text, []byte(`{"resourceLogs"`)) {
		return c.add(file, number, text)
	}
	var request exported
	if err := json.Unmarshal(text, &request); err != nil {
		return &DamageError{file, number, fmt.Sprintf("is not a request of OTLP in JSON: %v", err)}
	}
	for _, resource := range request.ResourceLogs {
		for _, scope := range resource.ScopeLogs {
			for _, record := range scope.LogRecords {
				if err := c.add(file, number, []byte(record.Body.StringValue)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// add adds a line of an audit log. Lines of other logs are only counted. If somebody makes a line
// look like one of them, its chain has a gap.
func (c *Collected) add(file string, number int, text []byte) error {
	if !bytes.Contains(text, []byte(`"audit.chain":`)) {
		c.others++
		return nil
	}
	l, err := parseLine(text)
	if err != nil {
		return &DamageError{file, number, err.Error()}
	}
	if c.chains == nil {
		c.chains = map[string][]collectedLine{}
	}
	chain := l.fields.Chain
	c.chains[chain] = append(c.chains[chain], collectedLine{l, text, file, number})
	return nil
}

// Verify checks each chain from its first line. Lines are put into the order of their numbers, and copies
// of a line are dropped. The error is a *DamageError if a chain is damaged.
func (c *Collected) Verify(v *Verifier) error {
	v.ends = map[string]bool{}
	for _, lines := range c.chains {
		slices.SortStableFunc(lines, func(a, b collectedLine) int { return cmp.Compare(a.fields.Sequence, b.fields.Sequence) })
		v.ends[hex.EncodeToString(lines[len(lines)-1].hash[:])] = true
	}
	if len(c.chains) == 0 {
		v.note("no line of an audit log was found: no record was written yet, or somebody removed them all, and the files cannot say which")
	}
	if c.others > 0 {
		v.note("%d lines of other logs were passed over", c.others)
	}
	copies := 0
	for _, lines := range slices.SortedFunc(maps.Values(c.chains), func(a, b []collectedLine) int {
		return cmp.Or(cmp.Compare(a[0].fields.Time, b[0].fields.Time), cmp.Compare(a[0].fields.Chain, b[0].fields.Chain))
	}) {
		for i, l := range lines {
			v.file, v.lines = l.file, l.number
			if i > 0 && lines[i-1].fields.Sequence == l.fields.Sequence {
				if !bytes.Equal(lines[i-1].text, l.text) {
					return v.damaged("has the same number %d as line %d of %s, but another text", l.fields.Sequence, lines[i-1].number, lines[i-1].file)
				}
				copies++
				continue
			}
			if err := v.line(l.text); err != nil {
				return err
			}
		}
		v.leave()
		v.chain = nil
	}
	if copies > 0 {
		v.note("%d lines are copies of other lines, which is not damage: a line that was not acknowledged in time is sent again", copies)
	}
	return nil
}
