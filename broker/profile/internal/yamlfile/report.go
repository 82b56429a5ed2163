// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Root is the index of the file itself, for problems that belong to no profile.
const Root = -1

// Place is a field of a file.
type Place struct {
	// Profile is the index of the profile that the field is in, or Root.
	Profile int
	// Path is the path of the field in its profile, or in the file.
	Path string
}

// Whole returns the place of the root of a file.
func Whole() Place { return Place{Root, ""} }

// Item returns the place of the profile with this index.
func Item(i int) Place { return Place{i, ""} }

// Field returns the place of a field in a map. The length of its path is bounded, because
// even a small file can have maxValues values, each with a path. A name of more than 64 bytes
// is cut. A field below a path of more than 256 bytes has that path.
func (p Place) Field(name string) Place {
	if len(name) > maxPathName {
		name = strings.ToValidUTF8(name[:maxPathName], "") + "…"
	}
	switch {
	case p.Path == "":
		return Place{p.Profile, name}
	case len(p.Path) > maxPath:
		return p
	}
	return Place{p.Profile, p.Path + "." + name}
}

// Index returns the place of an item in a list. An item below a path of more than 256 bytes
// has that path.
func (p Place) Index(i int) Place {
	if len(p.Path) > maxPath {
		return p
	}
	return Place{p.Profile, p.Path + "[" + strconv.Itoa(i) + "]"}
}

// Position is a line and a column, both counted from 1.
type Position struct{ Line, Column int }

func positionOf(n *yaml.Node) Position { return Position{n.Line, n.Column} }

// Report collects the problems of one file. It has the position of each field, so checks can
// report positions although they see only values.
type Report struct {
	// File is the name of the file.
	File string
	// Ranked reports whether the document was not read from a file. Then lines are numbers that
	// sort the problems by their fields.
	Ranked bool
	// Names are the names of profiles by their indices. It has only names that could be read.
	Names map[int]string
	// Invalid has the indices of profiles with problems. It has Root if the file has a
	// problem outside of profiles.
	Invalid map[int]bool
	// Positions are the positions of the fields that the file has.
	Positions map[Place]Position
	// Failed are the fields with a problem.
	Failed map[Place]bool

	problems Problems
	owners   []int // the profile index of each problem
	// more is the number of problems above maxProblems, and next is the position of the first of them.
	more int
	next Position
}

// NewReport returns an empty report about a file of this name.
func NewReport(file string) *Report {
	return &Report{
		File:      file,
		Names:     map[int]string{},
		Invalid:   map[int]bool{},
		Positions: map[Place]Position{},
		Failed:    map[Place]bool{},
	}
}

// Present reports whether the file has the field, even if the field cannot be read.
func (r *Report) Present(at Place) bool {
	_, ok := r.Positions[at]
	return ok
}

// At adds a problem at a position. It ignores further problems of the same field, which
// mostly follow from the first.
func (r *Report) At(where Place, pos Position, format string, args ...any) {
	if r.Failed[where] {
		return
	}
	r.Failed[where] = true
	r.Invalid[where.Profile] = true
	if len(r.problems) == maxProblems {
		if r.more++; r.more == 1 {
			r.next = pos
		}
		return
	}
	r.owners = append(r.owners, where.Profile)
	r.problems = append(r.problems, Problem{
		File: r.File, Line: pos.Line, Column: pos.Column,
		Field: where.Path, Message: fmt.Sprintf(format, args...),
	})
}

// Add adds a problem at the position of the field where. If the file does not have that
// field, it uses the position of the field around.
func (r *Report) Add(where, around Place, format string, args ...any) {
	pos, ok := r.Positions[where]
	if !ok {
		if r.Failed[around] {
			return // the map that should have the field could not be read
		}
		pos, ok = r.Positions[around]
	}
	if !ok {
		pos = r.Positions[Item(where.Profile)]
	}
	if pos.Line == 0 && !r.Ranked {
		pos = Position{1, 1}
	}
	r.At(where, pos, format, args...)
}

// Finish returns the problems, with the names of their profiles, sorted by position. If there are
// more than maxProblems, the last one says how many are not listed.
func (r *Report) Finish() Problems {
	for i, owner := range r.owners {
		if owner != Root {
			r.problems[i].Profile = r.Names[owner]
		}
	}
	r.problems.sort()
	if r.more > 0 {
		r.problems = append(r.problems, Problem{File: r.File, Line: r.next.Line, Column: r.next.Column, Message: fmt.Sprintf("and %d more problems, which are not listed", r.more)})
		r.owners, r.more = append(r.owners, Root), 0
	}
	if r.Ranked {
		for i := range r.problems {
			r.problems[i].Line, r.problems[i].Column = 0, 0
		}
	}
	return r.problems
}
