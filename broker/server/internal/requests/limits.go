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
	MaxContextSize    = 4 << 10
)

// Metadata has the fields of metadata that the broker reads, in all generations.
type Metadata[T TraceContext] interface {
	GetId() string
	GetTraceContext() T
}

// TraceContext has the fields of a trace context that the broker reads, in all generations.
type TraceContext interface {
	GetCorrelationId() string
}

// CheckMetadata refuses metadata whose ids have more than 128 bytes, or bytes that are not
// printable ASCII.
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

// CheckPartSize refuses a request with a field of more than largest bytes inside another
// field. It joins the names field and part only for an error, so a valid request does not
// allocate.
func CheckPartSize(op profile.Operation, field, part string, size, largest int) error {
	if size > largest {
		return CheckSize(op, field+part, size, largest)
	}
	return nil
}

// Invalid returns INVALID_ARGUMENT for a field of a request. The text must not quote the
// value of the field.
func Invalid(op fmt.Stringer, field, format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, "%s: %s "+format, append([]any{op, field}, args...)...)
}

// Refused returns an error of a request with the profile name.
func Refused(code codes.Code, op profile.Operation, name, format string, args ...any) error {
	return status.Errorf(code, "%s with profile %q: "+format, append([]any{op, name}, args...)...)
}

// MethodName is the name of a method that is not an operation of a profile.
type MethodName string

// String implements fmt.Stringer.
func (m MethodName) String() string { return string(m) }
