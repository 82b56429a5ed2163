// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Root is the index of problems that belong to the file and to no profile.
const Root = -1

// Place is a field of a file.
type Place struct {
	// Profile is the index of the profile that the field is in, or Root.
	Profile int
	// Path is that of the field in its profile, or in the file.
	Path string
}

// Whole is the root of a file.
func Whole() Place { return Place{Root, ""} }

// Item is a profile of a file, by its index.
func Item(i int) Place { return Place{i, ""} }

// Field is a place in a map. A path has bounds, since each value of a file has
// one and a file of little size can have MaxValues of them: a name is cut, and what
// is deeper than a long path has the place of that.
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

// Index is a place in a list, with the same bounds.
func (p Place) Index(i int) Place {
	if len(p.Path) > maxPath {
		return p
	}
	return Place{p.Profile, p.Path + "[" + strconv.Itoa(i) + "]"}
}

// Position is a line and a column, both counted from 1.
type Position struct{ Line, Column int }

func positionOf(n *yaml.Node) Position { return Position{n.Line, n.Column} }

// Report collects the problems of one file and remembers where each field is,
// so that checks of meaning, which see values only, still name the position.
type Report struct {
	// File is the name of the file.
	File string
	// Ranked says that there is no file, so that lines are the order of the fields.
	Ranked bool
	// Names are the names of profiles, as far as readable.
	Names map[int]string
	// Invalid are the profiles that are out of service, or Root.
	Invalid map[int]bool
	// Positions are those of each field that the file has.
	Positions map[Place]Position
	// Failed are the fields that a problem was reported for.
	Failed map[Place]bool

	problems Problems
	owners   []int // the profile index of each problem
}

// NewReport begins a report about a file of this name.
func NewReport(file string) *Report {
	return &Report{
		File:      file,
		Names:     map[int]string{},
		Invalid:   map[int]bool{},
		Positions: map[Place]Position{},
		Failed:    map[Place]bool{},
	}
}

// Present reports whether the file has the field, readable or not.
func (r *Report) Present(at Place) bool {
	_, ok := r.Positions[at]
	return ok
}

// At reports a problem at a position. One field has one problem: what follows
// from the first would only be noise.
func (r *Report) At(where Place, pos Position, format string, args ...any) {
	if r.Failed[where] {
		return
	}
	r.Failed[where] = true
	r.Invalid[where.Profile] = true
	r.owners = append(r.owners, where.Profile)
	r.problems = append(r.problems, Problem{
		File: r.File, Line: pos.Line, Column: pos.Column,
		Field: where.Path, Message: fmt.Sprintf(format, args...),
	})
}

// Add reports a problem at the field's own position or, where the file does not
// have the field, at the nearest one around it.
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

// Finish fills in the names, sorts and returns all problems.
func (r *Report) Finish() Problems {
	for i, owner := range r.owners {
		if owner != Root {
			r.problems[i].Profile = r.Names[owner]
		}
	}
	r.problems.sort()
	if r.Ranked {
		for i := range r.problems {
			r.problems[i].Line, r.problems[i].Column = 0, 0
		}
	}
	return r.problems
}
