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
	// File is the name the caller gave to the file.
	File string
	// Line and Column are where it is, both counted from 1; 0 for a
	// document that is in no file, see CompileDocument.
	Line, Column int
	// Profile is the name of the profile it is in, empty at the root of the
	// file and where the profile has no readable name.
	Profile string
	// Field is the path of the field inside the profile, or inside the file at
	// its root, in the spelling of the file: "API.SignCertificate.KeyUsage[2]".
	Field string
	// Message is one sentence: what was found and what was expected.
	Message string
}

// String renders the problem on one line, the way compilers do:
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

// Err returns all problems as one error, a line each, or nil when there are none.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return errors.New(ps.String())
}

// String renders the problems a line each, without a newline at the end.
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
