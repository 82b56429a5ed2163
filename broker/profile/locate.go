// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// root is the index of problems that belong to the file and to no profile.
const root = -1

// place is a field: the profile it is in (its index, or root) and its path.
type place struct {
	profile int
	path    string
}

// field is a place in a map. A path has bounds, since each value of a file has
// one and a file of little size can have maxNodes of them: a name is cut, and what
// is deeper than a long path has the place of that.
func (p place) field(name string) place {
	if len(name) > maxPathName {
		name = strings.ToValidUTF8(name[:maxPathName], "") + "…"
	}
	switch {
	case p.path == "":
		return place{p.profile, name}
	case len(p.path) > maxPath:
		return p
	}
	return place{p.profile, p.path + "." + name}
}

// index is a place in a list, with the same bounds.
func (p place) index(i int) place {
	if len(p.path) > maxPath {
		return p
	}
	return place{p.profile, p.path + "[" + strconv.Itoa(i) + "]"}
}

// position is a line and a column, both counted from 1.
type position struct{ line, column int }

func positionOf(n *yaml.Node) position { return position{n.Line, n.Column} }

// report collects the problems of one file and remembers where each field is,
// so that checks of meaning, which see values only, still name the position.
type report struct {
	file string
	// ranked tells that there is no file, so that lines are the order of the fields.
	ranked    bool
	problems  Problems
	owners    []int              // the profile index of each problem
	names     map[int]string     // profile names, as far as readable
	invalid   map[int]bool       // profiles that are out of service
	positions map[place]position // of each field that the file has
	failed    map[place]bool     // fields that a problem was reported for
}

func newReport(file string) *report {
	return &report{
		file:      file,
		names:     map[int]string{},
		invalid:   map[int]bool{},
		positions: map[place]position{},
		failed:    map[place]bool{},
	}
}

// present tells whether the file has the field, readable or not.
func (r *report) present(at place) bool {
	_, ok := r.positions[at]
	return ok
}

// at reports a problem at a position. One field has one problem: what follows
// from the first would only be noise.
func (r *report) at(where place, pos position, format string, args ...any) {
	if r.failed[where] {
		return
	}
	r.failed[where] = true
	r.invalid[where.profile] = true
	r.owners = append(r.owners, where.profile)
	r.problems = append(r.problems, Problem{
		File: r.file, Line: pos.line, Column: pos.column,
		Field: where.path, Message: fmt.Sprintf(format, args...),
	})
}

// add reports a problem at the field's own position or, where the file does not
// have the field, at the nearest one around it.
func (r *report) add(where, around place, format string, args ...any) {
	pos, ok := r.positions[where]
	if !ok {
		if r.failed[around] {
			return // the map that should have the field could not be read
		}
		pos, ok = r.positions[around]
	}
	if !ok {
		pos = r.positions[place{where.profile, ""}]
	}
	if pos.line == 0 && !r.ranked {
		pos = position{1, 1}
	}
	r.at(where, pos, format, args...)
}

// finish fills in the names and sorts.
func (r *report) finish() Problems {
	for i, owner := range r.owners {
		if owner != root {
			r.problems[i].Profile = r.names[owner]
		}
	}
	r.problems.sort()
	if r.ranked {
		for i := range r.problems {
			r.problems[i].Line, r.problems[i].Column = 0, 0
		}
	}
	return r.problems
}
