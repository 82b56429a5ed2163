// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// quickSize is the largest request of an operation in bytes that is served where it
// was received; larger ones go to the workers. It is some ten microseconds by the
// slowest digest. Keys by id are in memory.
func quickSize(op engine.Operation) int {
	switch op {
	case engine.HashData, engine.EncryptData, engine.DecryptData:
		return 16 << 10
	}
	return 0
}

// The limits of the fields of a request, in bytes.
const (
	maxMetadataIDSize = 128
	maxPEMSize        = 64 << 10
	maxSubjectSize    = 1 << 10
	maxAADSize        = 64 << 10
	maxNonceSize      = 32
	maxTagSize        = 32
	maxAESKeySize     = 32
	maxSignatureSize  = 64 << 10
)

// metadata is the part of every generation's metadata that is looked at.
type metadata interface {
	GetId() string
}

// traceContext is the part of every generation's trace context that is looked at.
type traceContext interface {
	GetCorrelationId() string
}

// checkMetadata bounds what is echoed and what ends up in audit records.
func checkMetadata(op fmt.Stringer, m metadata, t traceContext) error {
	if err := checkID(op, "metadata.id", m.GetId()); err != nil {
		return err
	}
	return checkID(op, "metadata.traceContext.correlationId", t.GetCorrelationId())
}

func checkID(op fmt.Stringer, field, id string) error {
	if len(id) > maxMetadataIDSize {
		return invalid(op, field, "has %d bytes, expected at most %d", len(id), maxMetadataIDSize)
	}
	for _, c := range []byte(id) {
		if c < ' ' || c > '~' {
			return invalid(op, field, "has the byte 0x%02x, expected printable ASCII only", c)
		}
	}
	return nil
}

func checkProfileName(op engine.Operation, name string) error {
	switch {
	case name == "":
		return invalid(op, "profile", "is empty, expected the name of a profile")
	case len(name) > profile.MaxNameLength:
		return invalid(op, "profile", "has %d bytes, expected at most %d", len(name), profile.MaxNameLength)
	}
	return nil
}

func checkSize(op engine.Operation, field string, size, largest int) error {
	if size > largest {
		return invalid(op, field, "has %d bytes, expected at most %d", size, largest)
	}
	return nil
}

// checkPartSize does the same for a field inside another one. Their names are only
// put together for an error.
func checkPartSize(op engine.Operation, field, part string, size, largest int) error {
	if size > largest {
		return checkSize(op, field+part, size, largest)
	}
	return nil
}

// invalid refuses a request for one of its fields. The sentence never quotes
// the field's value.
func invalid(op fmt.Stringer, field, format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, "%s: %s "+format, append([]any{op, field}, args...)...)
}

// refused refuses a request for what a profile says.
func refused(code codes.Code, op engine.Operation, name, format string, args ...any) error {
	return status.Errorf(code, "%s with profile %q: "+format, append([]any{op, name}, args...)...)
}
