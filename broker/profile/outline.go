// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// outline finds which fields the file of a document would have, and in which
// order, as the decoder does with a file. The line of a position counts fields
// then, which only sorts problems.
type outline struct {
	*report
	fields int
	// values are counted as the decoder does: a name and its value, or an item.
	values int
	// text is the length of all text and names, in bytes.
	text int
}

// Bounds of what a byte of text and a field take in a file, in bytes: the longest
// escape, and an indentation as deep as values nest with what YAML needs beside it.
const (
	maxEscape    = 10
	maxFieldSize = 4*maxDepth + 64
)

// outlineOf notes the fields of a document, and reports what no file could hold.
func outlineOf(r *report, doc *Document) {
	o := &outline{report: r}
	whole := place{root, ""}
	o.structure(reflect.ValueOf(*doc), whole, "Profiles")
	for i := range doc.Profiles {
		r.names[i] = doc.Profiles[i].Name
		o.values++
		o.value(reflect.ValueOf(doc.Profiles[i]), place{i, ""})
	}
	if o.values > maxNodes {
		r.at(whole, position{}, "the document holds more than %d values", maxNodes)
	}
	if o.text*maxEscape+o.fields*maxFieldSize > MaxFileSize {
		// Only now it matters what the file takes in fact.
		if data, err := Marshal(doc); err != nil {
			r.at(whole, position{}, "cannot be written as a file: %s", err)
		} else if len(data) > MaxFileSize {
			r.at(whole, position{}, "the file has %d bytes, expected at most %d", len(data), MaxFileSize)
		}
	}
}

// value notes a field and all that is in it.
func (o *outline) value(value reflect.Value, at place) {
	o.mark(at)
	switch value.Kind() {
	case reflect.Pointer:
		o.value(value.Elem(), at)
	case reflect.Struct:
		o.structure(value, at, "")
	case reflect.Slice:
		for i := range value.Len() {
			o.values++
			o.value(value.Index(i), at.index(i))
		}
	case reflect.Map:
		keys := slices.SortedFunc(slices.Values(value.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			name, element := key.String(), value.MapIndex(key)
			o.named(name)
			if element.Kind() == reflect.Interface {
				o.free(element.Interface(), at.field(name), maxDepth)
			} else {
				o.value(element, at.field(name))
			}
		}
	case reflect.String:
		o.string(value.String(), at)
	}
}

// named counts a name and its value.
func (o *outline) named(name string) {
	o.text += len(name)
	o.values += 2
}

func (o *outline) mark(at place) {
	o.fields++
	if _, known := o.positions[at]; !known {
		o.positions[at] = position{line: o.fields, column: 1}
	}
}

// structure notes the fields that Marshal writes, one of them left out.
func (o *outline) structure(value reflect.Value, at place, except string) {
	for i := range value.NumField() {
		name, option, _ := strings.Cut(value.Type().Field(i).Tag.Get("yaml"), ",")
		if name == except || option == "omitempty" && isEmpty(value.Field(i)) {
			continue
		}
		o.named(name)
		o.value(value.Field(i), at.field(name))
	}
}

// isEmpty is the rule of YAML's omitempty: a struct is empty where all fields are.
func isEmpty(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Slice, reflect.Map:
		return value.Len() == 0
	case reflect.Struct:
		for i := range value.NumField() {
			if !isEmpty(value.Field(i)) {
				return false
			}
		}
		return true
	default:
		return value.IsZero()
	}
}

func (o *outline) string(text string, at place) {
	o.text += len(text)
	if !utf8.ValidString(text) {
		o.add(at, at, "found text that is not UTF-8, expected text")
	}
}

// free notes a free-form value, with the rules of decoder.free.
func (o *outline) free(value any, at place, depth int) {
	o.mark(at)
	if depth == 0 {
		o.add(at, at, "nests deeper than %d levels", maxDepth)
		return
	}
	switch v := value.(type) {
	case nil:
		o.add(at, at, "has no value, %s", wantFree)
	case string:
		o.string(v, at)
	case bool, int, int64:
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			o.add(at, at, "found a value of a kind that is not supported, %s", wantFree)
		}
	case []any:
		for i, item := range v {
			o.values++
			o.free(item, at.index(i), depth-1)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			o.named(name)
			o.free(v[name], at.field(name), depth-1)
		}
	default:
		o.add(at, at, "found a value of a kind that is not supported, %s", wantFree)
	}
}
