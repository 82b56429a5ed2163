// SPDX-License-Identifier: Apache-2.0

package render

import "reflect"

// copyValue copies a value of a resource into one of a profile. Both have types of the
// same form, field by field, so that a new field or operation needs no code here: a test
// fails for a field that only one of them has. The forms differ in this:
//
//   - a value may be behind a pointer in one of them, and a nil pointer copies nothing,
//   - numbers have 32 bits in a resource,
//   - a resource has a struct of pointers where a profile has a map; the names of the
//     fields that are set become the keys.
func copyValue[To, From any](to *To, from *From) {
	copyInto(reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem())
}

func copyInto(to, from reflect.Value) {
	switch {
	case from.Kind() == reflect.Pointer:
		if !from.IsNil() {
			copyInto(to, from.Elem())
		}
	case to.Kind() == reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		copyInto(to.Elem(), from)
	case to.Kind() == reflect.Map:
		to.Set(reflect.MakeMap(to.Type()))
		for name, field := range from.Fields() {
			if !field.IsNil() {
				element := reflect.New(to.Type().Elem()).Elem()
				copyInto(element, field)
				to.SetMapIndex(reflect.ValueOf(name.Name), element)
			}
		}
	case from.Kind() == reflect.Struct:
		for name, field := range from.Fields() {
			copyInto(to.FieldByName(name.Name), field)
		}
	case from.Kind() == reflect.Slice && !from.Type().ConvertibleTo(to.Type()):
		if from.IsNil() {
			return
		}
		to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			copyInto(to.Index(i), from.Index(i))
		}
	default:
		to.Set(from.Convert(to.Type()))
	}
}
