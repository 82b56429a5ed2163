// SPDX-License-Identifier: Apache-2.0

package cryptobroker

// TraceContext is the trace that a call belongs to (W3C Trace Context). Its zero value is no
// trace.
type TraceContext struct {
	// TraceID has 32 hexadecimal digits, SpanID 16 and Flags 2, as in the header
	// traceparent.
	TraceID, SpanID, Flags string
	// State is the value of the header tracestate.
	State string
	// CorrelationID is an id that the caller chooses, at most 128 characters of printable
	// ASCII. Audit records have it.
	CorrelationID string
}

// Deprecation announces the end of a profile. A field is empty if the profile does not have it.
type Deprecation struct {
	// Profile is the name of the profile.
	Profile string
	// ReplacedBy is the name of the profile to use instead.
	ReplacedBy string
	// Since is since when the profile should not be used.
	Since string
	// RemoveAfter is the time after which the profile may be removed.
	RemoveAfter string
	// Reason says why the profile should not be used.
	Reason string
}

// appendMetadata appends the metadata of a request, if there is a trace.
func (t *TraceContext) appendMetadata(b []byte, n number) []byte {
	if *t == (TraceContext{}) {
		return b
	}
	start := len(b)
	b = appendString(b, traceID, t.TraceID)
	b = appendString(b, traceSpanID, t.SpanID)
	b = appendString(b, traceFlags, t.Flags)
	b = appendString(b, traceState, t.State)
	b = appendString(b, traceCorrelationID, t.CorrelationID)
	b = nest(b, start, metadataTrace)
	return nest(b, start, n)
}

// size returns an upper bound of the bytes that appendMetadata appends.
func (t *TraceContext) size() int {
	return len(t.TraceID) + len(t.SpanID) + len(t.Flags) + len(t.State) + len(t.CorrelationID) + 48
}

// readDeprecation returns the warning in the metadata of a reply, or nil if there is none.
func readDeprecation(metadata []byte) (*Deprecation, error) {
	var found *Deprecation
	f := fields{wire: metadata}
	for f.next() {
		if f.number != metadataDeprecation {
			continue
		}
		d := &Deprecation{}
		inner := fields{wire: f.bytes}
		for inner.next() {
			switch inner.number {
			case deprecationProfile:
				d.Profile = string(inner.bytes)
			case deprecationReplacedBy:
				d.ReplacedBy = string(inner.bytes)
			case deprecationSince:
				d.Since = string(inner.bytes)
			case deprecationRemoveAfter:
				d.RemoveAfter = string(inner.bytes)
			case deprecationReason:
				d.Reason = string(inner.bytes)
			}
		}
		if inner.err != nil {
			return nil, inner.err
		}
		found = d
	}
	return found, f.err
}
