// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// The limits of the fields of a request, in bytes.
const (
	maxMetadataIDSize = 128
	MaxPEMSize        = 64 << 10
	MaxSubjectSize    = 1 << 10
	MaxAADSize        = 64 << 10
	MaxNonceSize      = 32
	MaxTagSize        = 32
	MaxAESKeySize     = 32
	MaxSignatureSize  = 64 << 10
)

// Metadata is the part of the metadata of all generations that is looked at.
type Metadata[T TraceContext] interface {
	GetId() string
	GetTraceContext() T
}

// TraceContext is the part of the trace context of all generations that is looked at.
type TraceContext interface {
	GetCorrelationId() string
}

// CheckMetadata bounds the metadata that replies repeat.
func CheckMetadata[T TraceContext](op fmt.Stringer, m Metadata[T]) error {
	if err := checkID(op, "metadata.id", m.GetId()); err != nil {
		return err
	}
	return checkID(op, "metadata.traceContext.correlationId", m.GetTraceContext().GetCorrelationId())
}

func checkID(op fmt.Stringer, field, id string) error {
	if len(id) > maxMetadataIDSize {
		return Invalid(op, field, "has %d bytes, expected at most %d", len(id), maxMetadataIDSize)
	}
	for _, c := range []byte(id) {
		if c < ' ' || c > '~' {
			return Invalid(op, field, "has the byte 0x%02x, expected printable ASCII only", c)
		}
	}
	return nil
}

// CheckProfileName refuses a request whose field profile cannot be the name of a profile.
func CheckProfileName(op profile.Operation, name string) error {
	switch {
	case name == "":
		return Invalid(op, "profile", "is empty, expected the name of a profile")
	case len(name) > profile.MaxNameLength:
		return Invalid(op, "profile", "has %d bytes, expected at most %d", len(name), profile.MaxNameLength)
	}
	return nil
}

// CheckSize refuses a request with a field of more than largest bytes.
func CheckSize(op profile.Operation, field string, size, largest int) error {
	if size > largest {
		return Invalid(op, field, "has %d bytes, expected at most %d", size, largest)
	}
	return nil
}

// CheckPartSize does the same for a field inside another one. Their names are only
// put together for an error.
func CheckPartSize(op profile.Operation, field, part string, size, largest int) error {
	if size > largest {
		return CheckSize(op, field+part, size, largest)
	}
	return nil
}

// Invalid refuses a request for one of its fields. The sentence never quotes
// the field's value.
func Invalid(op fmt.Stringer, field, format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, "%s: %s "+format, append([]any{op, field}, args...)...)
}

// Refused refuses a request for what a profile says.
func Refused(code codes.Code, op profile.Operation, name, format string, args ...any) error {
	return status.Errorf(code, "%s with profile %q: "+format, append([]any{op, name}, args...)...)
}

// MethodName is the name of a method that is no operation of a profile.
type MethodName string

// String implements fmt.Stringer.
func (m MethodName) String() string { return string(m) }
