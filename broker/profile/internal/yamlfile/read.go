// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The names of fields that the structs must have: the list of profiles of the root, and the name
// of each profile.
const (
	profiles = "Profiles"
	name     = "Name"
)

// Read reads a file into the struct that document points to, and adds all violations of the
// format to the report. It reports false if the root cannot be read.
func Read(r *Report, data []byte, document any) bool {
	whole := Whole()
	if len(data) > MaxFileSize {
		r.At(whole, Position{1, 1}, "the file has more than %d bytes, and no file may have more", MaxFileSize)
		return false
	}
	content, ok := readDocument(r, data)
	if !ok {
		return false
	}
	d := &decoder{Report: r, budget: maxValues}
	if content, ok = d.resolve(content, whole); !ok {
		return false
	}
	value := reflect.ValueOf(document).Elem()
	switch content.Kind {
	case yaml.SequenceNode:
		d.profiles(content, value)
	case yaml.MappingNode:
		d.root(content, value)
	default:
		r.At(whole, positionOf(content), "found %s at the root, expected a list of profiles or a map with the key \"Profiles\"", describe(content))
		return false
	}
	return !d.exhausted
}

// readDocument parses the YAML. The file has to have exactly one document.
func readDocument(r *Report, data []byte) (*yaml.Node, bool) {
	whole := Whole()
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			r.At(whole, Position{1, 1}, "the file is empty, expected a list of profiles or a map with the key \"Profiles\"")
			return nil, false
		}
		pos, message := syntaxError(err)
		r.At(whole, pos, "not readable as YAML: %s", message)
		return nil, false
	}
	var second yaml.Node
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		pos, message := syntaxError(err)
		r.At(whole, pos, "not readable as YAML: %s", message)
		return nil, false
	default:
		r.At(whole, positionOf(&second), "found a second YAML document, expected one document in the file")
		return nil, false
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		r.At(whole, Position{1, 1}, "the file is empty, expected a list of profiles or a map with the key \"Profiles\"")
		return nil, false
	}
	return document.Content[0], true
}

var syntaxErrorLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// grammarError matches messages of the library's parser, which counts lines from 0. The
// library's scanner counts lines from 1.
var grammarError = regexp.MustCompile(`^did not find expected (node content|key|'-' indicator|',' or|<document start>)`)

// syntaxError splits a message of the YAML library into the line and the rest of the message. The
// library does not report columns.
func syntaxError(err error) (Position, string) {
	text := err.Error()
	pos := Position{1, 1}
	if match := syntaxErrorLine.FindStringSubmatch(text); match != nil {
		text = text[len(match[0]):]
		if line, err := strconv.Atoi(match[1]); err == nil {
			pos.Line = line
			if grammarError.MatchString(text) {
				pos.Line++
			}
		}
	}
	return pos, strings.TrimSpace(text)
}

// describe returns a description of a node, for "found …".
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
		return "the text " + Excerpt(n.Value)
	default:
		return "a value tagged " + Excerpt(n.Tag)
	}
}

func excerptPlain(found string) string {
	const longest = 64
	if len(found) > longest {
		return found[:longest] + "…"
	}
	return found
}
