// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"errors"
	"fmt"
	"time"
)

// Code says what kind of error a call ended with. The numbers are those of gRPC.
type Code uint32

// The codes that a call can end with.
const (
	// CodeCanceled: the context was canceled, or the client was closed.
	CodeCanceled Code = 1
	// CodeUnknown: none of the others.
	CodeUnknown Code = 2
	// CodeInvalidArgument: something in the request, or a profile that is not there.
	CodeInvalidArgument Code = 3
	// CodeDeadlineExceeded: the call took longer than it may. It is
	// context.DeadlineExceeded, too.
	CodeDeadlineExceeded Code = 4
	// CodeNotFound: the broker has no key of this id.
	CodeNotFound Code = 5
	// CodePermissionDenied: the profile does not allow the caller, or the key.
	CodePermissionDenied Code = 7
	// CodeResourceExhausted: the broker has too much to do. Calls are repeated.
	CodeResourceExhausted Code = 8
	// CodeFailedPrecondition: the profile does not offer the operation, or a key
	// cannot be used.
	CodeFailedPrecondition Code = 9
	// CodeAborted: the call met another one. Calls are repeated.
	CodeAborted Code = 10
	// CodeUnimplemented: the broker is too old for the call.
	CodeUnimplemented Code = 12
	// CodeInternal: a defect of the broker or of this package.
	CodeInternal Code = 13
	// CodeUnavailable: the broker, or a key manager behind it, cannot be reached.
	// Calls are repeated.
	CodeUnavailable Code = 14
)

var codeNames = map[Code]string{
	CodeCanceled: "CANCELED", CodeUnknown: "UNKNOWN", CodeInvalidArgument: "INVALID_ARGUMENT",
	CodeDeadlineExceeded: "DEADLINE_EXCEEDED", CodeNotFound: "NOT_FOUND", CodePermissionDenied: "PERMISSION_DENIED",
	CodeResourceExhausted: "RESOURCE_EXHAUSTED", CodeFailedPrecondition: "FAILED_PRECONDITION", CodeAborted: "ABORTED",
	CodeUnimplemented: "UNIMPLEMENTED", CodeInternal: "INTERNAL", CodeUnavailable: "UNAVAILABLE",
}

// String is the name of the code as gRPC writes it, such as "NOT_FOUND".
func (c Code) String() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return fmt.Sprintf("CODE_%d", uint32(c))
}

// transient reports whether a call that ended so may be made again.
func (c Code) transient() bool {
	return c == CodeUnavailable || c == CodeResourceExhausted || c == CodeAborted
}

// What errors.Is finds in an *Error.
var (
	// ErrInvalidArgument is CodeInvalidArgument.
	ErrInvalidArgument = errors.New("invalid argument")
	// ErrNotFound is CodeNotFound.
	ErrNotFound = errors.New("not found")
	// ErrPermissionDenied is CodePermissionDenied.
	ErrPermissionDenied = errors.New("permission denied")
	// ErrNotServed is CodeFailedPrecondition: the profile does not offer the
	// operation, or a key cannot be used.
	ErrNotServed = errors.New("not served")
	// ErrUnimplemented is CodeUnimplemented.
	ErrUnimplemented = errors.New("unimplemented")
	// ErrUnavailable is CodeUnavailable.
	ErrUnavailable = errors.New("unavailable")
	// ErrRetryBudgetSpent: the last try failed with one of the codes by which calls
	// are repeated, and there was no time left for another. The code is that of the
	// last try.
	ErrRetryBudgetSpent = errors.New("retry budget spent")
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("client closed")
)

// Error is what every method of Client returns for a call that failed. A context
// that ended is found by errors.Is as context.Canceled or context.DeadlineExceeded.
type Error struct {
	// Code is what kind of error it is.
	Code Code
	// Operation is the name of the operation, such as "HashData".
	Operation string
	// Profile is the one that was asked for; empty where an operation has none.
	Profile string
	// Message says what was found and what was expected. It quotes no secrets.
	Message string

	// cause is what errors.Is finds beside the code, or nil.
	cause error
}

// Error implements error.
func (e *Error) Error() string { return "crypto broker: " + e.Code.String() + ": " + e.Message }

// Unwrap returns the error of a context or a reader, ErrRetryBudgetSpent or
// ErrClosed, or nil.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether the target is the variable for the code of this error.
func (e *Error) Is(target error) bool {
	switch e.Code {
	case CodeInvalidArgument:
		return target == ErrInvalidArgument
	case CodeNotFound:
		return target == ErrNotFound
	case CodePermissionDenied:
		return target == ErrPermissionDenied
	case CodeFailedPrecondition:
		return target == ErrNotServed
	case CodeUnimplemented:
		return target == ErrUnimplemented
	case CodeUnavailable:
		return target == ErrUnavailable
	default:
		return false
	}
}

// failure is how a try ended; its zero value is success.
type failure struct {
	code    Code
	message string
	cause   error
	// final tells that the call cannot be made again, whatever the code.
	final bool
}

// transient reports whether the call may be made again.
func (f failure) transient() bool { return f.code.transient() && !f.final }

func (f failure) failed() bool { return f.code != 0 }

// error makes the error of a call. The sentences of a broker name operation and
// profile by themselves.
func (f failure) error(op *operation, profile string) *Error {
	return &Error{Code: f.code, Operation: op.name, Profile: profile, Message: f.message, cause: f.cause}
}

// said puts operation and profile before a sentence, as a broker does.
func said(op *operation, profile, format string, args ...any) string {
	text := op.name
	if profile != "" {
		text += fmt.Sprintf(" with profile %q", profile)
	}
	return text + ": " + fmt.Sprintf(format, args...)
}

// spent is the failure of a call whose retry budget has no time for another try.
func (f failure) spent(tries int, took time.Duration) failure {
	times := "1 try"
	if tries > 1 {
		times = fmt.Sprintf("%d tries", tries)
	}
	f.message = fmt.Sprintf("%s (given up after %s in %s)", f.message, times, took.Round(time.Millisecond))
	f.cause = ErrRetryBudgetSpent
	return f
}
