// SPDX-License-Identifier: Apache-2.0

// Package manifest reads manifests from files, finds the pod templates in them, checks objects
// of our own kinds by their schemas, and writes changed manifests. It needs no cluster.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	stream "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
)

// Document is one of a stream of YAML documents.
type Document struct {
	// Place says where it is, for messages: "app.yaml, document 2".
	Place string
	// Raw is the document as it was written, with its comments.
	Raw []byte
	// Object is nil for an empty document.
	Object map[string]any
	// Bad says why Object is nil although the document is not empty.
	Bad string
	// Set reports whether the document is a profile file.
	Set bool
}

// Text returns the text at a path of keys, empty if there is none.
func (d Document) Text(path ...string) string {
	value := any(d.Object)
	for _, key := range path {
		fields, ok := value.(map[string]any)
		if !ok {
			return ""
		}
		value = fields[key]
	}
	text, _ := value.(string) // a value of another type is no text
	return text
}

// documentsOf returns the documents of a file.
func documentsOf(name string, data []byte) (all []Document) {
	parts := split(data)
	for n, p := range parts {
		d := Document{Place: name, Raw: p.raw}
		if len(parts) > 1 {
			d.Place = fmt.Sprintf("%s, document %d", name, n+1)
		}
		var value any
		if err := yaml.UnmarshalStrict(p.raw, &value); directive.Match(p.raw) {
			value, d.Bad = nil, "found a directive of YAML, a line that begins with %, expected none, because kubectl reads none: delete the line"
		} else if err != nil {
			d.Bad = syntax(err, p)
		} else if hasMore(p.raw) {
			value, d.Bad = nil, `found a second document that no line "---" begins, such as after line breaks that are carriage returns alone; expected line breaks of LF or CRLF`
		}
		switch value := value.(type) {
		case nil:
		case map[string]any:
			d.Object = value
		default:
			d.Bad = fmt.Sprintf("found %s, expected an object with apiVersion and kind", whatIs(value))
		}
		if n == 0 && isSet(value) {
			return []Document{{Place: name, Raw: data, Set: true}}
		}
		all = append(all, d)
	}
	return all
}

// directive matches a document that begins with a directive, after comments.
var directive = regexp.MustCompile(`^(\s*(#.*)?\n)*%`)

// hasMore reports whether a text whose first document can be read has more than one. YAML has more line breaks than split knows.
// Package sigs.k8s.io/yaml reads the first document, and says nothing of the others.
func hasMore(text []byte) bool {
	decoder := stream.NewDecoder(bytes.NewReader(text))
	err := decoder.Decode(new(stream.Node))
	if err == nil {
		err = decoder.Decode(new(stream.Node))
	}
	return !errors.Is(err, io.EOF) // the first call may already return the error of a broken second document
}

// isSet reports whether a document is a profile file and no manifest: it is a list, or
// a map with the key Profiles.
func isSet(value any) bool {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			if fields, _ := item.(map[string]any); fields["apiVersion"] != nil || fields["kind"] != nil {
				return false
			}
		}
		return true
	case map[string]any:
		_, is := value["Profiles"]
		return is && value["kind"] == nil
	default:
		return false
	}
}

// whatIs describes a value that is not an object.
func whatIs(value any) string {
	switch value := value.(type) {
	case nil:
		return "nothing"
	case []any:
		return "a list"
	case string:
		return fmt.Sprintf("the text %q", shortened(value))
	default:
		return fmt.Sprintf("the value %v", value)
	}
}

func shortened(text string) string {
	const longest = 40
	if runes := []rune(text); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return text
}

// part is a document with the number of its first line in the file, less one.
type part struct {
	raw  []byte
	line int
}

// split splits a file into JSON objects, one after the other, or YAML documents, which
// begin with --- and end with "...".
func split(data []byte) (parts []part) {
	if parts, ok := splitJSON(data); ok {
		return parts
	}
	var buffer []byte
	begin, n := 0, 0
	end := func() {
		if len(buffer) > 0 {
			parts = append(parts, part{buffer, begin})
		}
		buffer = nil
	}
	for line := range bytes.Lines(data) {
		rest, separates := separator(line)
		if separates {
			end()
		}
		if len(buffer) == 0 {
			begin = n
		}
		buffer = append(buffer, rest...)
		n++
	}
	end()
	return parts
}

// separator reports whether a line separates documents, and returns the part of the
// line that belongs to the next document.
func separator(line []byte) (rest []byte, separates bool) {
	if bytes.Equal(bytes.TrimRight(line, " \t\r\n"), []byte("...")) {
		return nil, true
	}
	rest, marked := bytes.CutPrefix(line, []byte("---"))
	if !marked || len(rest) > 0 && !bytes.ContainsRune([]byte(" \t\r\n"), rune(rest[0])) {
		return line, false
	}
	if len(bytes.TrimSpace(rest)) == 0 {
		return nil, true
	}
	return rest, true
}

// splitJSON splits a file that is JSON as a whole and has more than one value.
func splitJSON(data []byte) (parts []part, ok bool) {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	for {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return parts, len(parts) > 1
		}
		if err != nil {
			return nil, false
		}
		begin := int(decoder.InputOffset()) - len(raw)
		parts = append(parts, part{append(raw, '\n'), bytes.Count(data[:begin], []byte("\n"))})
	}
}

var (
	// syntaxPrefixes are prefixes of libraries' messages without information.
	syntaxPrefixes = regexp.MustCompile(`^(error converting YAML to JSON: |yaml: |unmarshal errors: )+`)
	syntaxLine     = regexp.MustCompile(`\bline (\d+)`)
	// countsFromZero matches messages of the library's parser, which counts lines
	// from 0. Its scanner counts from 1.
	countsFromZero = regexp.MustCompile(`^line \d+: did not find expected (node content|key|'-' indicator|',' or|<document start>)`)
)

// syntax returns why a document is not valid YAML, with line numbers of the file.
func syntax(err error, p part) string {
	said := syntaxPrefixes.ReplaceAllString(apierror.OneLine(err.Error()), "")
	shift, last := p.line, p.line+bytes.Count(bytes.TrimSuffix(p.raw, []byte("\n")), []byte("\n"))+1
	if countsFromZero.MatchString(said) {
		shift++
	}
	said = syntaxLine.ReplaceAllStringFunc(said, func(found string) string {
		line, _ := strconv.Atoi(strings.TrimPrefix(found, "line ")) // digits by the expression
		return fmt.Sprintf("line %d", min(line+shift, last))
	})
	return "not readable as YAML: " + said
}

// Items returns the objects in a document: the items of a List and of Lists in it, or the object itself.
func (d Document) Items() []Document {
	list, is := d.Object["items"].([]any)
	if !is || d.Text("kind") != "List" && !isTypedList(d.Text("kind"), list) {
		return []Document{d}
	}
	var all []Document
	for i, item := range list {
		of := Document{Place: fmt.Sprintf("%s, items[%d]", d.Place, i)}
		if of.Object, is = item.(map[string]any); !is {
			of.Bad = fmt.Sprintf("found %s, expected an object with apiVersion and kind", whatIs(item))
		}
		all = append(all, of.Items()...)
	}
	return all
}

// isTypedList reports whether an object is a list of one kind, such as a
// CryptoProfileList, and not another object with a field "items".
func isTypedList(kind string, items []any) bool {
	if !strings.HasSuffix(kind, "List") || len(items) == 0 {
		return false
	}
	for _, item := range items {
		if fields, _ := item.(map[string]any); fields["kind"] == nil || fields["metadata"] == nil {
			return false
		}
	}
	return true
}

// Write writes a document. A document without changes is written as it was read.
func (d Document) Write(out *bytes.Buffer, changed bool) error {
	if !changed {
		out.Write(d.Raw)
		if len(d.Raw) > 0 && d.Raw[len(d.Raw)-1] != '\n' {
			out.WriteByte('\n')
		}
		return nil
	}
	data, err := yaml.Marshal(d.Object)
	if err != nil {
		return err
	}
	out.Write(data)
	return nil
}
