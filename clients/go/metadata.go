// SPDX-License-Identifier: Apache-2.0

package cryptobroker

// TraceContext joins a call to a trace (W3C Trace Context). Its zero value is none.
type TraceContext struct {
	// TraceID has 32 hexadecimal digits, SpanID 16 and Flags 2, as in the header
	// traceparent.
	TraceID, SpanID, Flags string
	// State is as in the header tracestate.
	State string
	// CorrelationID is an id of the caller's own, at most 128 characters of
	// printable ASCII. Audit records have it.
	CorrelationID string
}

// Deprecation announces the end of a profile. What is empty was not said.
type Deprecation struct {
	// Profile is the name of the profile.
	Profile string
	// ReplacedBy is the name of the profile to use instead.
	ReplacedBy string
	// Since is when the profile began to be one that should not be used.
	Since string
	// RemoveAfter is when the profile may be gone.
	RemoveAfter string
	// Reason says why.
	Reason string
}

// appendMetadata appends the metadata of a request, where there is any.
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

// size is at least how many bytes appendMetadata appends.
func (t *TraceContext) size() int {
	return len(t.TraceID) + len(t.SpanID) + len(t.Flags) + len(t.State) + len(t.CorrelationID) + 48
}

// readDeprecation finds the warning in the metadata of a reply, nil for none.
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
