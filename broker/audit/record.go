// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// Record describes a call. It has no part of the input, the output or the keys of the call.
type Record struct {
	Time time.Time
	// Use has what the call used, and who called. Fields are empty if the call was refused before
	// it used them.
	Use profile.Use
	// Profile and Digest are the name of the profile and the digest of the set that has it. Both
	// are empty for a call whose profile is not served.
	Profile, Digest string
	// Revision is the revision of the set, 0 if the set is not signed.
	Revision int64
	// Assessment is the assessment of the operation in the profile, or nil if there is none.
	Assessment *profile.Assessment
	// KeyVersion is the version of the first key of Use, and Pin the SHA-256 of its public key.
	// They are empty if the key has none.
	KeyVersion string
	Pin        []byte
	// RequestSize and ReplySize are the sizes of the encoded messages in bytes. For a stream
	// they are the bytes of all its messages as far as they are known, else 0.
	RequestSize, ReplySize int
	// Code is the name of the gRPC code, such as "OK", and Reason the text of the error.
	Code, Reason string
	// TraceID is the id of the trace that the call belongs to, empty if it has none.
	TraceID string
	// Began says that a stream begins. Its second record says how it ended.
	Began bool
}

// maxReason is the maximum size in bytes of the reason in a record.
const maxReason = 512

// append appends the record without its sequence number and hash: the beginning of a line.
func (r *Record) append(line, broker []byte) []byte {
	event := "call"
	if r.Began {
		event = "begin"
	}
	line = appendHead(line, event, r.Time, broker)
	if container := r.Use.Caller.Container; container != "" {
		line = appendText(line, "client.container", container)
	}
	if r.Use.Caller.Known {
		line = appendNumber(line, "client.uid", int64(r.Use.Caller.UID))
		line = appendNumber(line, "client.gid", int64(r.Use.Caller.GID))
	}
	line = appendText(line, "operation", r.Use.Operation.String())
	if r.Profile != "" {
		line = appendText(line, "profile", r.Profile)
		line = appendText(line, "profiles.digest", r.Digest)
		if r.Revision > 0 {
			line = appendNumber(line, "profiles.revision", r.Revision)
		}
	}
	if a := r.Assessment; a != nil {
		line = appendText(line, "algorithm", a.Algorithm)
		line = appendNumber(line, "strength", int64(a.Strength.Bits))
		verdict := "approved"
		if !a.FIPS.Approved() {
			verdict = "not approved"
		}
		line = appendText(line, "fips", verdict)
	}
	line = r.appendKeys(line)
	line = appendNumber(line, "request.size", int64(r.RequestSize))
	line = appendNumber(line, "reply.size", int64(r.ReplySize))
	if !r.Began {
		line = appendText(line, "code", r.Code)
	}
	if r.Reason != "" {
		line = appendText(line, "reason", r.Reason[:min(len(r.Reason), maxReason)])
	}
	if r.TraceID != "" {
		line = appendText(line, "trace_id", r.TraceID)
	}
	return line
}

func (r *Record) appendKeys(line []byte) []byte {
	if r.Use.Keys[0].Algorithm == "" {
		return line
	}
	line = append(line, `,"keys":[`...)
	for i, key := range r.Use.Keys {
		if key.Algorithm == "" {
			continue
		}
		if i > 0 {
			line = append(line, ',')
		}
		line = append(line, `{"algorithm":`...)
		line = appendString(line, key.Algorithm)
		if key.Bits > 0 {
			line = appendNumber(line, "bits", int64(key.Bits))
		}
		if key.ID != "" {
			line = appendText(line, "id", key.ID)
		}
		if i == 0 && r.KeyVersion != "" {
			line = appendText(line, "version", r.KeyVersion)
		}
		if i == 0 && len(r.Pin) > 0 {
			line = append(line, `,"spki.sha256":"`...)
			line = hex.AppendEncode(line, r.Pin)
			line = append(line, '"')
		}
		line = append(line, '}')
	}
	return append(line, ']')
}

// timeFormat is RFC 3339 with microseconds, in UTC.
const timeFormat = "2006-01-02T15:04:05.000000Z"

// appendHead appends the beginning of a line. broker has the attributes of the broker.
func appendHead(line []byte, event string, now time.Time, broker []byte) []byte {
	line = append(line, `{"time":"`...)
	line = now.UTC().AppendFormat(line, timeFormat)
	line = append(line, `","event":"`...)
	line = append(line, event...)
	line = append(line, '"')
	return append(line, broker...)
}

func appendText(line []byte, name, value string) []byte {
	return appendString(appendName(line, name), value)
}

func appendNumber(line []byte, name string, value int64) []byte {
	return strconv.AppendInt(appendName(line, name), value, 10)
}

func appendName(line []byte, name string) []byte {
	line = append(line, ',', '"')
	line = append(line, name...)
	return append(line, '"', ':')
}

// appendString appends a string of JSON. Most strings need no escapes.
func appendString(line []byte, value string) []byte {
	for i := range len(value) {
		if c := value[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(value) // a string always has a JSON form
			return append(line, quoted...)
		}
	}
	line = append(line, '"')
	line = append(line, value...)
	return append(line, '"')
}
