// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

// maxWrite is how long a line may take to be written. Then the program goes on without it.
const maxWrite = time.Second

// unread is the message of the line that says how many lines are missing.
const unread = "lines of the log are missing because the output took no line for a second"

// patient writes lines to an output that may stop taking them, such as a pipe that nobody reads. A
// program must not stop with its output: a broker would keep the profiles that it has, and would
// not end.
type patient struct {
	to io.Writer
	// missing returns the line that says how many lines are missing.
	missing func(lines uint64) []byte

	mu sync.Mutex
	// writing is closed once the output has taken the line that it did not take in time. It is nil
	// if there is none.
	writing chan struct{}
	lost    uint64
}

// Write writes a line. It returns before the output has taken the line if that takes too long. Until
// the output has taken it, all further lines are lost.
func (p *patient) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writing != nil {
		select {
		case <-p.writing:
			p.writing = nil
		default:
			p.lost++
			return len(line), nil
		}
	}
	text := bytes.Clone(line)
	if p.lost > 0 {
		text, p.lost = append(p.missing(p.lost), text...), 0
	}
	written := make(chan struct{})
	var err error
	go func() {
		defer close(written)
		_, err = p.to.Write(text)
	}()
	timer := time.NewTimer(maxWrite)
	defer timer.Stop()
	select {
	case <-written:
		return len(line), err
	case <-timer.C:
		p.writing = written
		return len(line), nil
	}
}

// missingLine returns the function missing for lines that a handler formats. handler returns a
// handler that writes to its argument.
func missingLine(handler func(io.Writer) slog.Handler) func(uint64) []byte {
	return func(lines uint64) []byte {
		var text bytes.Buffer
		record := slog.NewRecord(time.Now(), slog.LevelWarn, unread, 0)
		record.AddAttrs(slog.Uint64("omitted", lines))
		_ = handler(&text).Handle(context.Background(), record) // a buffer takes everything
		return text.Bytes()
	}
}
