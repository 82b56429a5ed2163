// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"context"
	"hash/maphash"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// The limits on repeats. A window begins with the first line that is written after the end of the
// window before.
const (
	window = time.Minute
	// maxSameLine is the maximum number of lines of one level, message and attributes that are
	// written.
	maxSameLine = 10
	// maxSameMessage is the maximum number of lines of one level and message that are written,
	// whatever their attributes are.
	maxSameMessage = 600
	// maxMessages is the maximum number of messages that are counted separately. Libraries write
	// messages that contain what a client sends. Further messages of a level count as one
	// message.
	maxMessages = 256
	// maxMessage is the maximum number of bytes of a message that are kept until the window ends.
	maxMessage = 256
	// maxLines is the maximum number of lines that are counted separately. Only maxSameMessage
	// limits further lines.
	maxLines = 2048
)

// leftOut is the message of the line that says how many lines were left out.
const leftOut = "left lines out of the log because they repeat"

// otherMessages stands for all further messages of a level.
const otherMessages = "other messages"

// ignoredKey is an attribute that differs in each line of controller-runtime about the same object.
const ignoredKey = "reconcileID"

// limited is a handler that leaves out lines that repeat.
type limited struct {
	repeats *repeats
	// prepared returns the next handler, with the attributes and groups of this one, and a hash
	// of them, 0 for none. They are prepared for the first line: controller-runtime gives each
	// reconciliation a logger with attributes, and few of these loggers write a line.
	prepared func() (next slog.Handler, with uint64)
}

// Enabled implements slog.Handler.
func (l *limited) Enabled(ctx context.Context, level slog.Level) bool {
	return l.repeats.to.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (l *limited) Handle(ctx context.Context, record slog.Record) error {
	next, with := l.prepared()
	if !l.repeats.admit(record, with) {
		return nil
	}
	return next.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (l *limited) WithAttrs(attributes []slog.Attr) slog.Handler {
	return l.with(func(next slog.Handler, sum *maphash.Hash) slog.Handler {
		for _, a := range attributes {
			hashAttribute(sum, a)
		}
		return next.WithAttrs(attributes)
	})
}

// WithGroup implements slog.Handler.
func (l *limited) WithGroup(name string) slog.Handler {
	return l.with(func(next slog.Handler, sum *maphash.Hash) slog.Handler {
		hashText(sum, name)
		return next.WithGroup(name)
	})
}

// with returns a handler with more attributes or groups. add returns the next handler with them,
// and adds them to the hash.
func (l *limited) with(add func(slog.Handler, *maphash.Hash) slog.Handler) *limited {
	return &limited{l.repeats, sync.OnceValues(func() (slog.Handler, uint64) {
		next, with := l.prepared()
		var sum maphash.Hash
		sum.SetSeed(l.repeats.seed)
		maphash.WriteComparable(&sum, with)
		next = add(next, &sum)
		return next, sum.Sum64()
	})}
}

// message identifies lines that maxSameMessage limits together.
type message struct {
	level slog.Level
	text  string
}

// tally counts the written and the omitted lines of one message.
type tally struct{ written, omitted int }

// repeats counts the lines of the current window.
type repeats struct {
	// to receives the lines about omitted lines.
	to   slog.Handler
	seed maphash.Seed

	mu       sync.Mutex
	ends     time.Time // of the window
	messages map[message]*tally
	lines    map[uint64]int
	// reporting reports whether a timer is set that will report omitted lines.
	reporting bool
}

func newRepeats(to slog.Handler) *repeats {
	return &repeats{to: to, seed: maphash.MakeSeed(), messages: map[message]*tally{}, lines: map[uint64]int{}}
}

// admit counts a line, and reports whether it is written.
func (r *repeats) admit(record slog.Record, with uint64) bool {
	line := r.hash(record, with)
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); !now.Before(r.ends) {
		r.write(r.begin(now))
	}
	return r.count(record, line)
}

// count counts a line of the current window, and reports whether it is written. The caller holds
// the mutex.
func (r *repeats) count(record slog.Record, line uint64) bool {
	t := r.tally(message{record.Level, shorten(record.Message)})
	same, known := r.lines[line]
	if t.written >= maxSameMessage || same >= maxSameLine {
		t.omitted++
		if !r.reporting {
			r.reporting = true
			time.AfterFunc(time.Until(r.ends), r.due)
		}
		return false
	}
	t.written++
	if known || len(r.lines) < maxLines {
		r.lines[line] = same + 1
	}
	return true
}

func (r *repeats) tally(m message) *tally {
	if t := r.messages[m]; t != nil {
		return t
	}
	if len(r.messages) >= maxMessages {
		m.text = otherMessages
		if t := r.messages[m]; t != nil {
			return t
		}
	}
	t := &tally{}
	r.messages[m] = t
	return t
}

// begin begins a window, and returns the tallies of the window before with omitted lines. The
// caller holds the mutex.
func (r *repeats) begin(now time.Time) map[message]int {
	omitted := map[message]int{}
	for m, t := range r.messages {
		if t.omitted > 0 {
			omitted[m] = t.omitted
		}
	}
	clear(r.messages)
	clear(r.lines)
	r.ends, r.reporting = now.Add(window), false
	return omitted
}

// due ends the window if its time is over, and reports its omitted lines.
func (r *repeats) due() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); !now.Before(r.ends) { // otherwise a line has begun another window
		r.write(r.begin(now))
	}
}

// report ends the window, and reports its omitted lines.
func (r *repeats) report() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.write(r.begin(time.Now()))
}

// write writes a line for each message of which lines were left out.
func (r *repeats) write(omitted map[message]int) {
	for m, count := range omitted {
		record := slog.NewRecord(time.Now(), m.level, leftOut, 0)
		record.AddAttrs(slog.String("repeated", m.text), slog.Int("omitted", count))
		_ = r.to.Handle(context.Background(), record) // if the log cannot be written, there is no place to report that
	}
}

// shorten returns a copy of the beginning of a long message.
func shorten(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(strings.Clone(text[:maxMessage]), "")
}

// hash returns the same number for lines of the same level, message and attributes.
func (r *repeats) hash(record slog.Record, with uint64) uint64 {
	var sum maphash.Hash
	sum.SetSeed(r.seed)
	maphash.WriteComparable(&sum, with)
	maphash.WriteComparable(&sum, record.Level)
	hashText(&sum, record.Message)
	record.Attrs(func(a slog.Attr) bool {
		hashAttribute(&sum, a)
		return true
	})
	return sum.Sum64()
}

func hashAttribute(sum *maphash.Hash, a slog.Attr) {
	if a.Key == ignoredKey {
		return
	}
	hashText(sum, a.Key)
	hashText(sum, a.Value.Resolve().String())
}

// hashText also hashes the length, so two texts never hash like their concatenation.
func hashText(sum *maphash.Hash, text string) {
	maphash.WriteComparable(sum, len(text))
	sum.WriteString(text)
}
