// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"errors"
	"fmt"
	"time"
)

// Code is the kind of error of a call. The numbers are the numbers of gRPC.
type Code uint32

// The codes of a call that failed.
const (
	// CodeCanceled means that the context was canceled, or the client was closed.
	CodeCanceled Code = 1
	// CodeUnknown means that no other code fits.
	CodeUnknown Code = 2
	// CodeInvalidArgument means that the request is not valid, or that the broker does not
	// have the profile.
	CodeInvalidArgument Code = 3
	// CodeDeadlineExceeded means that the call did not end before its deadline. errors.Is
	// finds context.DeadlineExceeded as well.
	CodeDeadlineExceeded Code = 4
	// CodeNotFound means that the broker has no key with the id.
	CodeNotFound Code = 5
	// CodePermissionDenied means that the profile does not allow the caller, or the key.
	CodePermissionDenied Code = 7
	// CodeResourceExhausted means that the broker has too much to do. The client tries
	// again.
	CodeResourceExhausted Code = 8
	// CodeFailedPrecondition means that the profile does not offer the operation, or that a
	// key cannot be used.
	CodeFailedPrecondition Code = 9
	// CodeAborted means that the call conflicted with another call. The client tries again.
	CodeAborted Code = 10
	// CodeUnimplemented means that the version of the broker does not have the operation.
	CodeUnimplemented Code = 12
	// CodeInternal means a defect of the broker or of this package.
	CodeInternal Code = 13
	// CodeUnavailable means that the broker, or a key manager that it uses, cannot be
	// reached. The client tries again.
	CodeUnavailable Code = 14
)

var codeNames = map[Code]string{
	CodeCanceled: "CANCELED", CodeUnknown: "UNKNOWN", CodeInvalidArgument: "INVALID_ARGUMENT",
	CodeDeadlineExceeded: "DEADLINE_EXCEEDED", CodeNotFound: "NOT_FOUND", CodePermissionDenied: "PERMISSION_DENIED",
	CodeResourceExhausted: "RESOURCE_EXHAUSTED", CodeFailedPrecondition: "FAILED_PRECONDITION", CodeAborted: "ABORTED",
	CodeUnimplemented: "UNIMPLEMENTED", CodeInternal: "INTERNAL", CodeUnavailable: "UNAVAILABLE",
}

// String returns the name of the code in gRPC, such as "NOT_FOUND".
func (c Code) String() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return fmt.Sprintf("CODE_%d", uint32(c))
}

// transient reports whether a call that ended with this code may be made again.
func (c Code) transient() bool {
	return c == CodeUnavailable || c == CodeResourceExhausted || c == CodeAborted
}

// The errors that errors.Is finds in an [*Error].
var (
	// ErrInvalidArgument is the error of CodeInvalidArgument.
	ErrInvalidArgument = errors.New("invalid argument")
	// ErrNotFound is the error of CodeNotFound.
	ErrNotFound = errors.New("not found")
	// ErrPermissionDenied is the error of CodePermissionDenied.
	ErrPermissionDenied = errors.New("permission denied")
	// ErrNotServed is the error of CodeFailedPrecondition: the profile does not offer the
	// operation, or a key cannot be used.
	ErrNotServed = errors.New("not served")
	// ErrUnimplemented is the error of CodeUnimplemented.
	ErrUnimplemented = errors.New("unimplemented")
	// ErrUnavailable is the error of CodeUnavailable.
	ErrUnavailable = errors.New("unavailable")
	// ErrRetryBudgetSpent means that the last try failed with a code after which the client
	// tries again, but no time was left. The code of the error is the code of the last try.
	ErrRetryBudgetSpent = errors.New("retry budget spent")
	// ErrClosed means that the client was closed.
	ErrClosed = errors.New("client closed")
)

// Error is the error of a call. If the context of the call has ended, errors.Is finds
// context.Canceled or context.DeadlineExceeded in it.
type Error struct {
	// Code is the kind of error.
	Code Code
	// Operation is the name of the operation, such as "HashData".
	Operation string
	// Profile is the name of the profile in the request. It is empty if the operation has no
	// profile.
	Profile string
	// Message says what was found and what was expected. It quotes no secrets.
	Message string

	// cause is another error that errors.Is finds, or nil.
	cause error
}

// Error implements error.
func (e *Error) Error() string { return "crypto broker: " + e.Code.String() + ": " + e.Message }

// Unwrap returns the error of a context or a reader, ErrRetryBudgetSpent or
// ErrClosed, or nil.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is the error of the code.
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

// failure is why a try failed. Its zero value means that the try succeeded.
type failure struct {
	code    Code
	message string
	cause   error
	// final reports whether the call cannot be made again, whatever the code is.
	final bool
}

// transient reports whether the call may be made again.
func (f failure) transient() bool { return f.code.transient() && !f.final }

func (f failure) failed() bool { return f.code != 0 }

// error returns the error of the call.
func (f failure) error(op *operation, profile string) *Error {
	return &Error{Code: f.code, Operation: op.name, Profile: profile, Message: f.message, cause: f.cause}
}

// said returns a sentence with operation and profile before it, as a broker does.
func said(op *operation, profile, format string, args ...any) string {
	text := op.name
	if profile != "" {
		text += fmt.Sprintf(" with profile %q", profile)
	}
	return text + ": " + fmt.Sprintf(format, args...)
}

// spent returns the failure of a call whose retry budget has no time for another try.
func (f failure) spent(tries int, took time.Duration) failure {
	times := "1 try"
	if tries > 1 {
		times = fmt.Sprintf("%d tries", tries)
	}
	f.message = fmt.Sprintf("%s (given up after %s in %s)", f.message, times, took.Round(time.Millisecond))
	f.cause = ErrRetryBudgetSpent
	return f
}
