// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables in docs/compatibility.md")

// tablePage is the page with the tables.
const tablePage = "../../docs/compatibility.md"

// matrix has which driver has which operation.
type matrix map[string]map[string]bool

// add records the result of a case: the driver supports all operations of the case before the missing one. An
// operation that was missing once stays missing.
func (m matrix) add(driver string, c Case, missing string) {
	if m[driver] == nil {
		m[driver] = map[string]bool{}
	}
	for _, s := range c.Steps {
		if s.Operation == missing {
			m[driver][s.Operation] = false
			return
		}
		if _, known := m[driver][s.Operation]; !known {
			m[driver][s.Operation] = true
		}
	}
}

// String returns the matrix as a table in Markdown.
func (m matrix) String() string {
	drivers := slices.Sorted(maps.Keys(m))
	operations := map[string]bool{}
	for _, has := range m {
		maps.Copy(operations, has)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| operation | %s |\n|---|%s\n", strings.Join(drivers, " | "), strings.Repeat("---|", len(drivers)))
	for _, operation := range slices.Sorted(maps.Keys(operations)) {
		fmt.Fprintf(&b, "| %s |", operation)
		for _, driver := range drivers {
			if m[driver][operation] {
				b.WriteString(" yes |")
			} else {
				b.WriteString(" no |")
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// operationsOf returns the operations of cases, sorted.
func operationsOf(cases []Case) []string {
	all := map[string]bool{}
	for _, c := range cases {
		for _, s := range c.Steps {
			all[s.Operation] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func TestATableHasARowForEachOperationAndAColumnForEachDriver(t *testing.T) {
	m := matrix{}
	m.add("b", Case{Steps: []Step{{Operation: "WrapKey"}, {Operation: "UnwrapKey"}}}, "UnwrapKey")
	m.add("a", Case{Steps: []Step{{Operation: "HashData"}}}, "")
	want := "| operation | a | b |\n|---|---|---|\n| HashData | yes | no |\n| UnwrapKey | no | no |\n| WrapKey | no | yes |\n"
	if got := m.String(); got != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
}

func TestAValueIsComparedWithWhatACaseExpects(t *testing.T) {
	type object = map[string]any
	for name, c := range map[string]struct {
		want, got any
		message   string
	}{
		"a text as it is":                       {"a", "a", ""},
		"another text":                          {"a", "b", "reply is b, expected a"},
		"false may be missing":                  {object{"valid": false}, object{}, ""},
		"true may not be missing":               {object{"valid": true}, object{}, "reply.valid is <nil>, expected true"},
		"more fields do not matter":             {object{"a": "1"}, object{"a": "1", "b": "2"}, ""},
		"a field of a field":                    {object{"a": object{"b": "1"}}, object{"a": object{"b": "2"}}, "reply.a.b is 2, expected 1"},
		"as many bytes":                         {object{"$bytes": 3.0}, "YWJj", ""},
		"other bytes":                           {object{"$bytes": 4.0}, "YWJj", "reply is YWJj, expected 4 bytes in base64"},
		"no bytes":                              {object{"$bytes": 4.0}, nil, "reply is <nil>, expected 4 bytes in base64"},
		"a part of a text":                      {object{"$contains": "b"}, "abc", ""},
		"no part of a text":                     {object{"$contains": "d"}, "abc", "reply is abc, expected a text with \"d\""},
		"a value":                               {object{"$set": true}, "x", ""},
		"no value":                              {object{"$set": true}, "", "reply is empty, expected a value"},
		"a list":                                {[]any{object{"a": "1"}}, []any{object{"a": "1"}}, ""},
		"a list with another element":           {[]any{"a", "b"}, []any{"a", "c"}, "reply[1] is c, expected b"},
		"a list with fewer elements":            {[]any{"a", "b"}, []any{"a"}, "reply has 1 elements, expected 2"},
		"a list is expected and there is a map": {[]any{"a"}, object{"a": "b"}, "reply has 0 elements, expected 1"},
	} {
		t.Run(name, func(t *testing.T) {
			message := ""
			if err := compare("reply", c.want, c.got); err != nil {
				message = err.Error()
			}
			if message != c.message {
				t.Errorf("the error is %q, want %q", message, c.message)
			}
		})
	}
}
