// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// outline records the fields that the file of a struct would have, in their order. The line of a
// position is the number of the field. It is only used to sort problems.
type outline struct {
	*Report
	fields int
	// values is the number of values that the decoder would count: two for a name and its value,
	// one for an item of a list.
	values int
	// text is the length in bytes of all text and names.
	text int
}

// Bounds of the size in a file, in bytes. maxEscape is the longest escape of one byte of text.
// maxFieldSize is the deepest indentation of a field, with YAML's punctuation.
const (
	maxEscape    = 10
	maxFieldSize = 4*MaxDepth + 64
)

// Outline records the fields of a struct that was not read from a file, and reports values that
// no file can have. marshal returns the file. Outline calls marshal only if the file may be too
// large.
func Outline(r *Report, document any, marshal func() ([]byte, error)) {
	r.Ranked = true
	o := &outline{Report: r}
	whole, value := Whole(), reflect.ValueOf(document).Elem()
	o.structure(value, whole, profiles)
	list := value.FieldByName(profiles)
	for i := range list.Len() {
		r.Names[i] = list.Index(i).FieldByName(name).String()
		o.values++
		o.value(list.Index(i), Item(i))
	}
	if o.values > maxValues {
		r.At(whole, Position{}, "the document holds more than %d values", maxValues)
	}
	if o.text*maxEscape+o.fields*maxFieldSize > MaxFileSize {
		// The bound is above the limit, so the real size decides.
		if data, err := marshal(); err != nil {
			r.At(whole, Position{}, "cannot be written as a file: %s", err)
		} else if len(data) > MaxFileSize {
			r.At(whole, Position{}, "the file has more than %d bytes, and no file may have more", MaxFileSize)
		}
	}
}

// value records a field and all fields in it.
func (o *outline) value(value reflect.Value, at Place) {
	o.mark(at)
	switch value.Kind() {
	case reflect.Pointer:
		o.value(value.Elem(), at)
	case reflect.Interface:
		if found := value.Elem().Type(); found != plain(value.Type()) && found != reflect.TypeFor[map[string]any]() {
			o.Add(at, at, "found a value of a kind that is not supported, expected %s", expected(value.Type()))
			return
		}
		o.value(value.Elem(), at)
	case reflect.Struct:
		o.structure(value, at, "")
	case reflect.Slice:
		for i := range value.Len() {
			o.values++
			o.value(value.Index(i), at.Index(i))
		}
	case reflect.Map:
		keys := slices.SortedFunc(slices.Values(value.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			name, element := key.String(), value.MapIndex(key)
			o.named(name)
			if element.Kind() == reflect.Interface {
				o.free(element.Interface(), at.Field(name), MaxDepth)
			} else {
				o.value(element, at.Field(name))
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

func (o *outline) mark(at Place) {
	o.fields++
	if _, known := o.Positions[at]; !known {
		o.Positions[at] = Position{o.fields, 1}
	}
}

// structure records the fields of a struct that Marshal would write. It leaves out the field with
// the name except.
func (o *outline) structure(value reflect.Value, at Place, except string) {
	for i := range value.NumField() {
		name, option, _ := strings.Cut(value.Type().Field(i).Tag.Get("yaml"), ",")
		if name == except || option == "omitempty" && isEmpty(value.Field(i)) {
			continue
		}
		o.named(name)
		o.value(value.Field(i), at.Field(name))
	}
}

// isEmpty reports whether YAML's omitempty leaves a value out. A struct is empty if all its
// fields are.
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

func (o *outline) string(text string, at Place) {
	o.text += len(text)
	if !utf8.ValidString(text) {
		o.Add(at, at, "found text that is not UTF-8, expected text")
	}
}

// free records a value of any form, by the rules of decoder.free.
func (o *outline) free(value any, at Place, depth int) {
	o.mark(at)
	if depth == 0 {
		o.Add(at, at, "nests deeper than %d levels", MaxDepth)
		return
	}
	switch v := value.(type) {
	case nil:
		o.Add(at, at, "has no value, %s", wantFree)
	case string:
		o.string(v, at)
	case bool, int, int64:
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			o.Add(at, at, "found a value of a kind that is not supported, %s", wantFree)
		}
	case []any:
		for i, item := range v {
			o.values++
			o.free(item, at.Index(i), depth-1)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			o.named(name)
			o.free(v[name], at.Field(name), depth-1)
		}
	default:
		o.Add(at, at, "found a value of a kind that is not supported, %s", wantFree)
	}
}
