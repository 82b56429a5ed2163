// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Sizes and times of a log.
const (
	// maxQueue is the maximum size in bytes of the records that wait to be written. If there is
	// no room for a record, the record is lost, or the broker refuses its call.
	maxQueue = 1 << 20
	// maxWait is how long a call waits for its record to be written.
	maxWait = 5 * time.Second
	// maxClose is how long Close waits. Two attempts to send records to a collector take less.
	maxClose = 15 * time.Second
	// checkpointTime is the maximum age, and checkpointLines the maximum number, of lines that no
	// checkpoint has signed.
	checkpointTime  = 10 * time.Second
	checkpointLines = 1000
	// syncTime is the longest time between two syncs to the disk, unless each record is synced.
	syncTime = time.Second
	// reportTime is the shortest time between two messages in the broker's log about lost
	// records.
	reportTime = time.Minute
)

// The errors of records that were not written.
var (
	errFull   = errors.New("the queue of audit records is full")
	errSlow   = fmt.Errorf("the record was not written within %s", maxWait)
	errClosed = errors.New("the broker ends")
)

// Options are the settings of a [Log].
type Options struct {
	// Output is where lines go.
	Output Output
	// Attributes are pairs of a name and a value that each line has.
	Attributes [][2]string
	// Signer signs the checkpoints. CheckKey allows its public key.
	Signer crypto.Signer
	// SyncEach makes a record count as written once it is on the disk. Without it, lines are
	// synced each second.
	SyncEach bool
	// Resend is for an output whose error does not say whether it has the lines. The log then
	// repeats the same lines until the output takes them, before it writes others. So the output
	// may have copies of a line, but never two different lines with the same number.
	Resend bool
	Logger *slog.Logger
}

// Log writes records. It is safe for concurrent use.
type Log struct {
	options Options
	key     string // the public key of Signer
	broker  []byte // the attributes of each line
	wake    chan struct{}
	stop    chan struct{}
	stopped chan struct{}

	mu     sync.Mutex
	batch  *batch // the batch that waits to be written, nil if there is none
	spare  []byte // the memory of an earlier batch
	lost   uint64 // records that were lost since the last line
	closed bool

	written, totalLost atomic.Uint64

	// Only the writing goroutine uses the fields below. saved is the state after the last line
	// that was written.
	state    state
	saved    state
	out      []byte
	dirty    bool      // whether there are lines that are not synced
	fresh    bool      // whether the output has begun a file that has no line yet
	reported time.Time // when the log said that records are lost
	failing  bool
	unknown  bool // whether the output may end with a part of lines that it did not take
	cut      bool // whether the log has given up lines that the output may have, so that no further lines may follow
}

// state is the position in the log.
type state struct {
	chain  chain
	begun  bool      // whether the chain has a line
	signed time.Time // when the last checkpoint was written
}

// batch are records that are written together.
type batch struct {
	text []byte
	ends []int // where each record ends in text
	done chan struct{}
	err  error // once done is closed
}

// New returns a log. Nothing is written before the first record.
func New(options Options) (*Log, error) {
	if err := CheckKey(options.Signer.Public()); err != nil {
		return nil, fmt.Errorf("the key of the audit log %w", err)
	}
	key, err := publicKeyText(options.Signer.Public())
	if err != nil {
		return nil, err
	}
	l := &Log{options: options, key: key, wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{})}
	var attributes []byte
	for _, a := range options.Attributes {
		attributes = appendText(attributes, a[0], a[1])
	}
	l.state.chain = newChain(attributes)
	l.saved, l.broker = l.state, l.state.chain.broker
	go l.run()
	return l, nil
}

// Stats returns how many records were written, and how many were lost.
func (l *Log) Stats() (written, lost uint64) { return l.written.Load(), l.totalLost.Load() }

// Add queues a record. If there is no room for it, the record is lost, and the log counts it.
func (l *Log) Add(r *Record) { _, _ = l.put(r) }

// Write writes a record and returns once it is written. An error continues the sentence "the
// record was not written: …". The record may still be written later.
func (l *Log) Write(ctx context.Context, r *Record) error {
	b, err := l.put(r)
	if err != nil {
		return err
	}
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case <-b.done:
		return b.err
	case <-timer.C:
		return errSlow
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Log) put(r *Record) (*batch, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, err := l.room()
	if err != nil {
		return nil, err
	}
	b.text = r.append(b.text, l.broker)
	l.end(b)
	return b, nil
}

// room returns the batch that the next record belongs to. If there is no room for a record, it
// is lost. The caller has locked mu.
func (l *Log) room() (*batch, error) {
	switch {
	case l.closed:
		l.lose(1)
		return nil, errClosed
	case l.batch != nil && len(l.batch.text) > maxQueue:
		l.lose(1)
		return nil, errFull
	}
	if l.batch == nil {
		l.batch, l.spare = &batch{text: l.spare, done: make(chan struct{})}, nil
	}
	return l.batch, nil
}

// end completes a record in the text of a batch. The caller has locked mu.
func (l *Log) end(b *batch) {
	if b.ends = append(b.ends, len(b.text)); len(b.ends) == 1 {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// lose counts lost records. The caller has locked mu.
func (l *Log) lose(n int) {
	l.lost += uint64(n)
	l.totalLost.Add(uint64(n))
}

// Close writes the queued records and the end of the chain. It gives up after maxClose, because a
// program has to end even if nobody reads its standard error.
func (l *Log) Close() {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.closed = true
	l.mu.Unlock()
	close(l.stop)
	timer := time.NewTimer(maxClose)
	defer timer.Stop()
	select {
	case <-l.stopped:
	case <-timer.C:
		l.options.Logger.Error("the last audit records cannot be written, and the program ends without them")
	}
}

func (l *Log) run() {
	defer close(l.stopped)
	timer := time.NewTimer(syncTime)
	timer.Stop()
	armed := false
	for {
		ending := false
		select {
		case <-l.wake:
		case <-timer.C:
			armed = false
		case <-l.stop:
			ending = true
		}
		now := time.Now()
		l.flush(now, ending)
		if ending {
			return
		}
		if !armed {
			l.sync()
			if armed = l.state.begun && (l.dirty || l.state.chain.unsigned > 0); armed {
				timer.Reset(syncTime)
			}
		}
	}
}

// flush writes the queued records, and a checkpoint if one is due.
func (l *Log) flush(now time.Time, ending bool) {
	l.mu.Lock()
	b, lost := l.batch, l.lost
	if b == nil && (!l.state.begun || l.state.chain.unsigned == 0 && !ending) {
		l.mu.Unlock()
		return
	}
	l.batch, l.lost = nil, 0
	l.mu.Unlock()
	written, err := false, errClosed
	if !l.cut {
		written, err = l.writeLines(now, b, lost, ending)
	}
	if !written {
		l.state = l.saved
		l.mu.Lock()
		l.lost += lost
		if b != nil {
			l.lose(len(b.ends))
		}
		l.mu.Unlock()
	} else if b != nil {
		l.written.Add(uint64(len(b.ends)))
	}
	l.report(now, err)
	if b != nil {
		l.mu.Lock()
		if l.spare = b.text[:0]; cap(b.text) > maxQueue/8 {
			l.spare = nil
		}
		l.mu.Unlock()
		b.text, b.err = nil, err
		close(b.done)
	}
}

// writeLines writes the lines of a batch, and the lines of the log itself before and after them.
// written reports whether the output has the lines, even if they may not be on the disk.
func (l *Log) writeLines(now time.Time, b *batch, lost uint64, ending bool) (written bool, err error) {
	c, out := &l.state.chain, l.out[:0]
	switch {
	case !l.state.begun:
		if l.options.Output.Full() {
			if err := l.options.Output.Rotate(); errors.Is(err, errGone) {
				return false, err
			} else if err != nil {
				l.report(now, err) // the file grows, but nothing is lost
			}
		}
		out = c.add(out, l.startLine(now))
		l.state.begun, l.state.signed = true, now
	case l.options.Output.Full():
		if err := l.rotate(now); errors.Is(err, errGone) {
			return false, err
		} else if err != nil {
			l.report(now, err) // the file grows, but nothing is lost
		}
	}
	if l.fresh {
		out = c.add(out, appendText(appendHead(nil, "continue", now, c.broker), "public_key", l.key))
	}
	if lost > 0 || l.unknown {
		out = c.add(out, c.lostLine(now, lost))
	}
	if b != nil {
		from := 0
		for _, end := range b.ends {
			out = c.add(out, b.text[from:end])
			from = end
		}
	}
	event := "checkpoint"
	if ending {
		event = "end"
	}
	if ending || c.unsigned >= checkpointLines || now.Sub(l.state.signed) >= checkpointTime {
		if out, err = c.checkpoint(out, event, now, l.options.Signer); err != nil {
			return false, err
		}
		l.state.signed = now
	}
	if l.out = out[:0]; cap(out) > maxQueue {
		l.out = nil
	}
	if len(out) == 0 {
		return true, nil
	}
	return l.write(out, ending || l.options.SyncEach)
}

func (l *Log) startLine(now time.Time) []byte {
	line := appendNumber(appendHead(nil, "start", now, l.broker), "format", 1)
	line = appendText(line, "public_key", l.key)
	if previous := l.options.Output.Previous(); previous != "" {
		line = appendText(line, "previous", previous)
	}
	return line
}

// rotate signs the lines of the file, and begins a new file.
func (l *Log) rotate(now time.Time) error {
	c, out := &l.state.chain, []byte(nil)
	if l.unknown {
		out = c.add(out, c.lostLine(now, 0))
	}
	out, err := c.checkpoint(out, "checkpoint", now, l.options.Signer)
	if err == nil {
		l.state.signed = now
		_, err = l.write(out, true)
	}
	if err != nil {
		l.state = l.saved
		return err
	}
	err = l.options.Output.Rotate()
	l.fresh = err == nil || !l.options.Output.Full()
	return err
}

func (l *Log) write(out []byte, sync bool) (written bool, err error) {
	if err := l.send(out); err != nil {
		l.unknown = true
		return false, err
	}
	l.saved, l.dirty, l.fresh, l.unknown = l.state, true, false, false
	if !sync {
		return true, nil
	}
	if err := l.options.Output.Sync(); err != nil {
		return true, err
	}
	l.dirty = false
	return true, nil
}

// sync syncs lines that are not synced yet. If that fails, the next write probably fails as well.
func (l *Log) sync() {
	if l.dirty {
		if err := l.options.Output.Sync(); err != nil {
			l.report(time.Now(), err)
		} else {
			l.dirty = false
		}
	}
}

// report logs that records are being lost, and when records are written again.
func (l *Log) report(now time.Time, err error) {
	switch {
	case err != nil:
		l.failing = true
		if now.Sub(l.reported) >= reportTime {
			l.reported = now
			l.options.Logger.Error("audit records cannot be written; calls that require one are refused, and other records are lost", "error", err, "lost", l.totalLost.Load())
		}
	case l.failing:
		l.failing, l.reported = false, time.Time{}
		l.options.Logger.Info("audit records are written again", "lost", l.totalLost.Load())
	}
}
