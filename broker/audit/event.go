// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"time"
)

// Event is a record of something other than a call, such as a decision of the operator. Its
// methods return the event, so that they can be chained. An event must not contain any part of a
// key.
type Event struct {
	// Time is when it happened.
	Time   time.Time
	name   string
	fields []byte
}

// NewEvent returns an event that happens now. The name is the field "event" of the record. It
// must differ from the names that records of calls and of the log itself have.
func NewEvent(name string) *Event { return &Event{Time: time.Now(), name: name} }

// maxText is the maximum size in bytes of a text of an event.
const maxText = 512

// Text adds a field. A field without a value is left out, and a long value is cut after 512
// bytes.
func (e *Event) Text(name, value string) *Event {
	if value != "" {
		e.fields = appendText(e.fields, name, value[:min(len(value), maxText)])
	}
	return e
}

// Number adds a field with a number.
func (e *Event) Number(name string, value int64) *Event {
	e.fields = appendNumber(e.fields, name, value)
	return e
}

func (e *Event) append(line, attributes []byte) []byte {
	return append(appendHead(line, e.name, e.Time, attributes), e.fields...)
}

// AddEvent queues an event, as Add queues a record. It does nothing if the log is nil.
func (l *Log) AddEvent(e *Event) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, err := l.room(); err == nil {
		b.text = e.append(b.text, l.broker)
		l.end(b)
	}
}
