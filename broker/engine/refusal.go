// SPDX-License-Identifier: Apache-2.0

package engine

import "fmt"

// InputError is the error of a request with an invalid field.
type InputError struct {
	// Field is the path of the field in the request, such as "keySource.rawKey".
	Field string
	// Problem is the end of a sentence that begins with Field: what was found and what was
	// expected. It never quotes a value that may be secret.
	Problem string
}

// Error implements error.
func (e *InputError) Error() string { return e.Field + " " + e.Problem }

// PreconditionError is the error of a valid request that the broker cannot serve, because
// something in the broker is missing or wrong.
type PreconditionError struct {
	// Problem is a sentence that says what is missing and where it is expected.
	Problem string
}

// Error implements error.
func (e *PreconditionError) Error() string { return e.Problem }

func inputError(field, format string, args ...any) error {
	return &InputError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

func preconditionError(format string, args ...any) error {
	return &PreconditionError{Problem: fmt.Sprintf(format, args...)}
}
