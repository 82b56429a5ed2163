// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decoder reads the nodes of a file into the fields of a struct, by their yaml tags. The YAML
// library could do this as well, but it reports only the first problem of a value, and no column.
type decoder struct {
	*Report
	// budget is the number of values that may still be read. exhausted reports whether the file
	// has more values.
	budget    int
	exhausted bool
}

// spend counts one value. It reports false, and adds a problem, if there are too many.
func (d *decoder) spend(n *yaml.Node) bool {
	if d.exhausted {
		return false
	}
	if d.budget--; d.budget < 0 {
		d.exhausted = true
		d.At(Whole(), positionOf(n), "the file holds more than %d values once its aliases are followed", maxValues)
		return false
	}
	return true
}

// resolve returns the node that an alias stands for, or n itself. An alias inside its own anchor
// does not loop forever, because each step reduces budget.
func (d *decoder) resolve(n *yaml.Node, at Place) (*yaml.Node, bool) {
	if !d.spend(n) {
		return nil, false
	}
	if n.Kind == yaml.AliasNode {
		if n.Alias == nil {
			d.At(at, positionOf(n), "found an alias without an anchor")
			return nil, false
		}
		n = n.Alias
	}
	return n, true
}

// root reads a file whose root is a map.
func (d *decoder) root(n *yaml.Node, value reflect.Value) {
	at := Whole()
	d.Positions[at] = positionOf(n)
	fields := fieldsOf(value.Type())
	for _, entry := range d.entries(n, at) {
		where := at.Field(entry.name)
		if entry.name == profiles {
			d.Positions[where] = positionOf(entry.key)
			list, ok := d.resolve(entry.value, where)
			if !ok {
				continue
			}
			if list.Kind != yaml.SequenceNode {
				d.At(where, positionOf(entry.value), "found %s, expected a list of profiles", describe(list))
				continue
			}
			d.profiles(list, value)
			continue
		}
		d.field(entry, at, fields, value)
	}
	if where := at.Field(profiles); !d.Present(where) {
		d.Add(where, at, "is missing, expected a list of profiles")
	}
}

// profiles reads the list of profiles.
func (d *decoder) profiles(n *yaml.Node, value reflect.Value) {
	list := value.FieldByName(profiles)
	list.Set(reflect.MakeSlice(list.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		at := Item(i)
		d.Positions[at] = positionOf(item)
		item, ok := d.resolve(item, at)
		if !ok {
			continue
		}
		d.into(item, at, list.Index(i))
		d.Names[i] = list.Index(i).FieldByName(name).String()
	}
}

// entry is one key of a map with its value, which may be an alias.
type entry struct {
	name       string
	key, value *yaml.Node
}

// entries returns the keys of a map, each once, after merge keys ("<<") are applied. A key of
// the map itself takes precedence over a merged one.
func (d *decoder) entries(n *yaml.Node, at Place) []entry {
	return d.entriesWithin(n, at, MaxDepth)
}

func (d *decoder) entriesWithin(n *yaml.Node, at Place, depth int) []entry {
	var own []entry
	var merges []*yaml.Node
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !d.spend(key) {
			return nil
		}
		if key.ShortTag() == "!!merge" {
			merges = append(merges, value)
			continue
		}
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!null" {
			d.At(at.Field(fmt.Sprintf("line %d", key.Line)), positionOf(key), "found %s as a key, expected a name", describe(key))
			continue
		}
		if line, twice := seen[key.Value]; twice {
			d.At(at.Field(key.Value), positionOf(key), "the key is there twice, first on line %d", line)
			continue
		}
		seen[key.Value] = key.Line
		own = append(own, entry{key.Value, key, value})
	}
	for _, merge := range merges {
		for _, merged := range d.merged(merge, at, depth-1) {
			if _, there := seen[merged.name]; !there {
				seen[merged.name] = merged.key.Line
				own = append(own, merged)
			}
		}
	}
	return own
}

// merged returns the entries that a merge key adds. Its value is a map, an alias of a map, or
// a list of both.
func (d *decoder) merged(n *yaml.Node, at Place, depth int) []entry {
	where := at.Field("<<")
	if depth == 0 {
		d.At(where, positionOf(n), "merges maps deeper than %d levels", MaxDepth)
		return nil
	}
	source, ok := d.resolve(n, where)
	if !ok {
		return nil
	}
	switch source.Kind {
	case yaml.MappingNode:
		return d.entriesWithin(source, at, depth)
	case yaml.SequenceNode:
		var all []entry
		for _, item := range source.Content {
			if item, ok = d.resolve(item, where); !ok {
				return nil
			}
			if item.Kind != yaml.MappingNode {
				d.At(where, positionOf(n), "found %s in a merge key, expected a map", describe(item))
				return nil
			}
			all = append(all, d.entriesWithin(item, at, depth)...)
		}
		return all
	default:
		d.At(where, positionOf(n), "found %s in a merge key, expected a map", describe(source))
		return nil
	}
}

// into reads a node into a value. n is not an alias.
func (d *decoder) into(n *yaml.Node, at Place, value reflect.Value) {
	if at.Path != "" && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		d.At(at, d.Positions[at], "has no value, expected %s; leave the field out if it is not needed", expected(value.Type()))
		return
	}
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		d.into(n, at, value.Elem())
	case reflect.Struct:
		if n.Kind != yaml.MappingNode {
			d.mismatch(n, at, value.Type())
			return
		}
		fields := fieldsOf(value.Type())
		for _, entry := range d.entries(n, at) {
			d.field(entry, at, fields, value)
		}
	case reflect.Slice:
		d.slice(n, at, value)
	case reflect.Map:
		d.mapping(n, at, value)
	case reflect.Interface:
		d.either(n, at, value)
	case reflect.String:
		if !isText(n) {
			d.mismatch(n, at, value.Type())
			return
		}
		value.SetString(n.Value)
	case reflect.Int, reflect.Int64:
		number, err := strconv.ParseInt(n.Value, 10, 64)
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || err != nil || strconv.FormatInt(number, 10) != n.Value {
			d.mismatch(n, at, value.Type())
			return
		}
		value.SetInt(number)
	case reflect.Bool:
		// A tag may say that another text is a boolean, such as "!!bool yes".
		isTrue := strings.EqualFold(n.Value, "true")
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || !isTrue && !strings.EqualFold(n.Value, "false") {
			d.mismatch(n, at, value.Type())
			return
		}
		value.SetBool(isTrue)
	default:
		panic(fmt.Sprintf("profile: no rule reads a %s", value.Type()))
	}
}

// field reads one entry of a map into the struct field of its name.
func (d *decoder) field(e entry, at Place, fields map[string]int, value reflect.Value) {
	index, known := fields[e.name]
	if known {
		d.read(e, at.Field(e.name), value.Field(index))
		return
	}
	names := FieldNames(value.Type())
	d.At(at.Field(e.name), positionOf(e.key), "unknown field %s, expected %s%s", Excerpt(e.name), List(names), DidYouMean(e.name, names))
	if near := Nearest(e.name, names); near != "" && !d.Present(at.Field(near)) {
		// The field that was misspelt is not also reported as missing.
		d.Positions[at.Field(near)] = positionOf(e.key)
		d.Failed[at.Field(near)] = true
	}
}

// read reads an entry into a value, and notes its position. The position is the position of the
// value. For maps and lists it is the position of the key, because their content is on later
// lines.
func (d *decoder) read(e entry, where Place, value reflect.Value) {
	d.Positions[where] = positionOf(e.value)
	n, ok := d.resolve(e.value, where)
	if !ok {
		return
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		d.Positions[where] = positionOf(e.key)
	}
	d.into(n, where, value)
}

func (d *decoder) slice(n *yaml.Node, at Place, value reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.mismatch(n, at, value.Type())
		return
	}
	if len(n.Content) == 0 {
		return // an empty list is the same as an absent one
	}
	value.Set(reflect.MakeSlice(value.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		where := at.Index(i)
		d.Positions[where] = positionOf(item)
		item, ok := d.resolve(item, where)
		if !ok {
			return
		}
		d.into(item, where, value.Index(i))
	}
}

func (d *decoder) mapping(n *yaml.Node, at Place, value reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.mismatch(n, at, value.Type())
		return
	}
	entries := d.entries(n, at)
	if len(entries) == 0 {
		return
	}
	value.Set(reflect.MakeMapWithSize(value.Type(), len(entries)))
	for _, e := range entries {
		where := at.Field(e.name)
		if value.Type().Elem().Kind() == reflect.Interface {
			d.Positions[where] = positionOf(e.value)
			if free, ok := d.free(e.value, where, MaxDepth); ok && free != nil {
				value.SetMapIndex(reflect.ValueOf(e.name), reflect.ValueOf(free))
			}
			continue
		}
		element := reflect.New(value.Type().Elem()).Elem()
		d.read(e, where, element)
		value.SetMapIndex(reflect.ValueOf(e.name), element)
	}
}

// either reads a [TextOrMap] or a [BoolOrMap].
func (d *decoder) either(n *yaml.Node, at Place, value reflect.Value) {
	kind := plain(value.Type())
	if n.Kind == yaml.MappingNode {
		kind = reflect.TypeFor[map[string]any]()
	} else if kind.Kind() == reflect.String && !isText(n) || kind.Kind() == reflect.Bool && (n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool") {
		d.mismatch(n, at, value.Type())
		return
	}
	found := reflect.New(kind).Elem()
	d.into(n, at, found)
	if kind.Kind() != reflect.Map || found.Len() > 0 { // an empty map is the same as an absent one
		value.Set(found)
	}
}

func (d *decoder) mismatch(n *yaml.Node, at Place, want reflect.Type) {
	pos := d.Positions[at]
	if n.Kind != yaml.ScalarNode && n.Line >= pos.Line {
		pos = positionOf(n)
	}
	d.At(at, pos, "found %s, expected %s", describe(n), expected(want))
}

// isText reports whether a node is text. As in released brokers, numbers and times are text as
// well. Booleans and null are not text, because their author probably meant something else.
func isText(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode {
		return false
	}
	switch n.ShortTag() {
	case "!!str", "!!int", "!!float", "!!timestamp":
		return true
	default:
		return false
	}
}

// expected returns a description of a type, for "expected …".
func expected(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return expected(t.Elem())
	case reflect.Struct:
		return "a map with " + List(FieldNames(t))
	case reflect.Map:
		return "a map"
	case reflect.Interface:
		return expected(plain(t)) + ", or a map"
	case reflect.Slice:
		return "a list"
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	default:
		return "a whole number"
	}
}

// fieldsOf returns the indices of a struct's fields by their names in the file.
func fieldsOf(t reflect.Type) map[string]int {
	fields := make(map[string]int, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		fields[name] = i
	}
	return fields
}

// FieldNames returns the names that a struct's fields have in the file, in the order of the
// struct.
func FieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
	}
	return names
}
