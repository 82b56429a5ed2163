// SPDX-License-Identifier: Apache-2.0

package engine

import "fmt"

// InputError refuses a request for what one of its fields holds.
type InputError struct {
	// Field is the path of the field in the request, such as "keySource.rawKey".
	Field string
	// Problem continues the sentence that the field begins: what was found and
	// what was expected. It never quotes the field's value.
	Problem string
}

// Error is the whole sentence.
func (e *InputError) Error() string { return e.Field + " " + e.Problem }

// PreconditionError refuses a request that would be right if the broker had what
// it needs for it.
type PreconditionError struct {
	// Problem is the sentence: what is missing and where it is expected.
	Problem string
}

// Error is the sentence.
func (e *PreconditionError) Error() string { return e.Problem }

func inputError(field, format string, args ...any) error {
	return &InputError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

func preconditionError(format string, args ...any) error {
	return &PreconditionError{Problem: fmt.Sprintf(format, args...)}
}
