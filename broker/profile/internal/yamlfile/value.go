// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Required adds the problem of a field that is missing or empty.
func (r *Report) Required(at, around Place, want string) {
	if r.Present(at) {
		r.Add(at, around, "is empty, expected %s", want)
		return
	}
	r.Add(at, around, "is missing, expected %s", want)
}

// Enum checks that a value is one of a fixed list of names. Upper and lower case do not
// matter.
func (r *Report) Enum(at, around Place, found string, allowed []string) {
	r.OneOf(at, around, found, allowed, strings.EqualFold)
}

// OneOf checks that a value equals one of a fixed list of names.
func (r *Report) OneOf(at, around Place, found string, allowed []string, equal func(a, b string) bool) {
	want := List(allowed)
	if len(allowed) > 1 {
		want = "one of " + want
	}
	if found == "" {
		r.Required(at, around, want)
		return
	}
	if !slices.ContainsFunc(allowed, func(a string) bool { return equal(a, found) }) {
		r.Add(at, around, "unknown value %s, expected %s%s", Excerpt(found), want, DidYouMean(found, allowed))
	}
}

// Size checks that a value is one of a fixed list of sizes in bits. A size that is not
// required may be absent.
func (r *Report) Size(at, around Place, found int, allowed []int, required bool) {
	names := make([]string, len(allowed))
	for i, n := range allowed {
		names[i] = fmt.Sprint(n)
	}
	want := "one of " + strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1] + " bits"
	switch {
	case r.Failed[at] || r.Failed[around]:
	case !r.Present(at) && found == 0:
		if required {
			r.Add(at, around, "is missing, expected %s", want)
		}
	case !slices.Contains(allowed, found):
		r.Add(at, around, "found %d, expected %s", found, want)
	}
}

// Text checks that a free text is printable and has at most longest bytes.
func (r *Report) Text(at Place, found string, longest int) {
	switch {
	case len(found) > longest:
		r.Add(at, at, "the text has %d bytes, expected at most %d", len(found), longest)
	case !Printable(found):
		r.Add(at, at, "found %s, expected printable characters only", Excerpt(found))
	}
}

// Duration returns a Go duration. It reports false, and adds a problem, if the value is not
// a duration.
func (r *Report) Duration(at, around Place, found string) (time.Duration, bool) {
	const want = "a duration such as \"-1h\" or \"8760h\""
	if found == "" {
		r.Required(at, around, want)
		return 0, false
	}
	d, err := time.ParseDuration(found)
	if err != nil {
		r.Add(at, around, "found %s, expected %s", Excerpt(found), want)
		return 0, false
	}
	return d, true
}

// AnyPresent reports whether the document has one of the fields of a place.
func (r *Report) AnyPresent(at Place, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return r.Present(at.Field(name)) })
}

// Printable reports whether a text is UTF-8 and has only characters that can be printed.
func Printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
