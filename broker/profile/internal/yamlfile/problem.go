// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a profile file.
type Problem struct {
	// File is the name of the file, as the caller has given it.
	File string
	// Line and Column are where the problem is, both counted from 1. They are 0 for a
	// document that was not read from a file.
	Line, Column int
	// Profile is the name of the profile with the problem. It is empty at the root of the
	// file, and if the profile has no readable name.
	Profile string
	// Field is the path of the field, such as "API.SignCertificate.KeyUsage[2]". It begins
	// in the profile, or at the root of the file if the problem is not in a profile.
	Field string
	// Message is one sentence: what was found and what was expected.
	Message string
}

// String returns the problem on one line, as compilers do:
//
//	Profiles.yaml:12:16: profile "Default": API.HashData.HashAlg: unknown value …
func (p Problem) String() string {
	var b strings.Builder
	if p.Line != 0 {
		fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Column)
	}
	if p.Profile != "" {
		fmt.Fprintf(&b, "profile %q: ", p.Profile)
	}
	if p.Field != "" {
		b.WriteString(p.Field)
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Problems lists everything that is wrong with a file, sorted by position.
type Problems []Problem

// Err returns all problems as one error with a line for each, or nil if there are none.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return errors.New(ps.String())
}

// String returns the problems, a line for each, without a newline at the end.
func (ps Problems) String() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

func (ps Problems) sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Field, b.Field))
	})
}
