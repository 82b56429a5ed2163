// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parse reads a profile file of either form and reports, all at once, what is
// not of the format: keys it does not know or finds twice, values of the wrong
// type, more than one document, a file above MaxFileSize. It does not judge
// what the values mean, which Compile does. The document holds what could be
// read and is nil where the root could not.
//
// file is only used to name the file in problems.
func Parse(file string, data []byte) (*Document, Problems) {
	r := newReport(file)
	doc := parse(r, data)
	return doc, r.finish()
}

func parse(r *report, data []byte) *Document {
	whole := place{root, ""}
	start := position{1, 1}
	if len(data) > MaxFileSize {
		r.at(whole, start, "the file has %d bytes, expected at most %d", len(data), MaxFileSize)
		return nil
	}
	content, ok := readDocument(r, data)
	if !ok {
		return nil
	}
	d := &decoder{report: r, budget: maxNodes}
	doc := &Document{}
	content, ok = d.resolve(content, whole)
	if !ok {
		return nil
	}
	switch content.Kind {
	case yaml.SequenceNode:
		d.profiles(content, place{root, "Profiles"}, doc)
	case yaml.MappingNode:
		d.root(content, doc)
	default:
		r.at(whole, positionOf(content), "found %s at the root, expected a list of profiles or a map with the key \"Profiles\"", describe(content))
		return nil
	}
	if d.exhausted {
		return nil
	}
	return doc
}

// readDocument parses the YAML and insists on exactly one document.
func readDocument(r *report, data []byte) (*yaml.Node, bool) {
	whole := place{root, ""}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			r.at(whole, position{1, 1}, "the file is empty, expected a list of profiles or a map with the key \"Profiles\"")
			return nil, false
		}
		pos, message := syntaxError(err)
		r.at(whole, pos, "not readable as YAML: %s", message)
		return nil, false
	}
	var second yaml.Node
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		pos, message := syntaxError(err)
		r.at(whole, pos, "not readable as YAML: %s", message)
		return nil, false
	default:
		r.at(whole, positionOf(&second), "found a second YAML document, expected one document in the file")
		return nil, false
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		r.at(whole, position{1, 1}, "the file is empty, expected a list of profiles or a map with the key \"Profiles\"")
		return nil, false
	}
	return document.Content[0], true
}

var syntaxErrorLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// grammarError matches messages of the library's parser. It counts lines from 0
// in them, and from 1 in those of its scanner.
var grammarError = regexp.MustCompile(`^did not find expected (node content|key|'-' indicator|',' or|<document start>)`)

// syntaxError takes the line out of the library's message. It tells no column.
func syntaxError(err error) (position, string) {
	text := err.Error()
	pos := position{1, 1}
	if match := syntaxErrorLine.FindStringSubmatch(text); match != nil {
		text = text[len(match[0]):]
		if line, err := strconv.Atoi(match[1]); err == nil {
			pos.line = line
			if grammarError.MatchString(text) {
				pos.line++
			}
		}
	}
	return pos, strings.TrimSpace(text)
}

// describe names what a node holds, for "found …".
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
	default:
		return "something unreadable"
	}
	switch n.ShortTag() {
	case "!!null":
		return "no value"
	case "!!bool":
		return "the boolean " + n.Value
	case "!!int", "!!float":
		return "the number " + excerptPlain(n.Value)
	case "!!str", "!!timestamp":
		return "the text " + excerpt(n.Value)
	default:
		return "a value tagged " + excerpt(n.Tag)
	}
}

func excerptPlain(found string) string {
	const longest = 64
	if len(found) > longest {
		return found[:longest] + "…"
	}
	return found
}
