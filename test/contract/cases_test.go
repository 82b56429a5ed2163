// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Case is one sentence of the contract.
type Case struct {
	// Name is the sentence.
	Name string `json:"name"`
	// WireOnly is whether only drivers without a client can run the case.
	WireOnly bool `json:"wireOnly"`
	// Steps are its calls, in this order.
	Steps []Step `json:"steps"`
}

// Step is one call of a case.
type Step struct {
	// Operation is the method, such as "HashData".
	Operation string `json:"operation"`
	// Request is the request, in which texts like ${name} stand for saved values.
	Request map[string]any `json:"request"`
	// Session is the version of the encrypted session, "v1" or "native", whose client the test is in this case. The test
	// adds to the request what the client of the session sends, and reads what it gets.
	Session string `json:"session"`
	// Reply has the fields that the reply must have. It is nil if an error is expected.
	Reply map[string]any `json:"reply"`
	// Error is the expected error, or nil.
	Error *ExpectedError `json:"error"`
	// Save has the paths of fields of the reply by the names that later steps use.
	Save map[string]string `json:"save"`
}

// ExpectedError says which error a call has to end with.
type ExpectedError struct {
	// Code is the name of the code, such as "NOT_FOUND".
	Code string `json:"code"`
	// Message is a part of the message.
	Message string `json:"message"`
}

// readCases returns the cases of all files of a directory, in the order of the files' names.
func readCases(dir string) ([]Case, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []Case
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var file struct {
			Cases []Case `json:"cases"`
		}
		decoder := json.NewDecoder(bytes.NewReader(content))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: expected one JSON document", path)
		}
		for _, c := range file.Cases {
			if err := c.check(); err != nil {
				return nil, fmt.Errorf("%s: case %q: %w", path, c.Name, err)
			}
			if slices.ContainsFunc(all, func(other Case) bool { return other.Name == c.Name }) {
				return nil, fmt.Errorf("%s: case %q is there twice", path, c.Name)
			}
			all = append(all, c)
		}
	}
	return all, nil
}

func (c Case) check() error {
	if c.Name == "" || len(c.Steps) == 0 {
		return errors.New("expected a name and at least one step")
	}
	for i, s := range c.Steps {
		switch {
		case s.Operation == "":
			return fmt.Errorf("step %d: expected an operation", i+1)
		case (s.Reply == nil) == (s.Error == nil):
			return fmt.Errorf("step %d: expected either a reply or an error", i+1)
		case s.Error != nil && s.Error.Code == "":
			return fmt.Errorf("step %d: expected the code of the error", i+1)
		}
	}
	return nil
}

// variable is a text that stands for a saved value.
var variable = regexp.MustCompile(`^\$\{(\w+)\}$`)

// fill returns a request with the saved values in the places of their names.
func fill(value any, saved map[string]any) (any, error) {
	switch v := value.(type) {
	case string:
		match := variable.FindStringSubmatch(v)
		if match == nil {
			return v, nil
		}
		known, ok := saved[match[1]]
		if !ok {
			return nil, fmt.Errorf("nothing was saved as %q", match[1])
		}
		return known, nil
	case []any:
		filled := make([]any, len(v))
		for i, element := range v {
			var err error
			if filled[i], err = fill(element, saved); err != nil {
				return nil, err
			}
		}
		return filled, nil
	case map[string]any:
		if count, ok := v["$repeat"].(float64); ok {
			return base64.StdEncoding.EncodeToString(make([]byte, int(count))), nil
		}
		filled := make(map[string]any, len(v))
		for name, element := range v {
			var err error
			if filled[name], err = fill(element, saved); err != nil {
				return nil, err
			}
		}
		return filled, nil
	}
	return value, nil
}

// compare returns an error that names the first field of got that is not as wanted. want and got
// are values of encoding/json.
func compare(path string, want, got any) error {
	switch w := want.(type) {
	case map[string]any:
		if done, err := compareMatcher(path, w, got); done {
			return err
		}
		g, _ := got.(map[string]any)
		for name, element := range w {
			if err := compare(path+"."+name, element, g[name]); err != nil {
				return err
			}
		}
		return nil
	case []any:
		g, _ := got.([]any)
		if len(g) != len(w) {
			return fmt.Errorf("%s has %d elements, expected %d", path, len(g), len(w))
		}
		for i, element := range w {
			if err := compare(fmt.Sprintf("%s[%d]", path, i), element, g[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if missing := got == nil && isZero(want); got != want && !missing {
		return fmt.Errorf("%s is %v, expected %v", path, got, want)
	}
	return nil
}

// compareMatcher compares a value with a matcher, and reports whether want is a matcher.
func compareMatcher(path string, want map[string]any, got any) (bool, error) {
	text, _ := got.(string)
	if size, ok := want["$bytes"].(float64); ok {
		content, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(content) != int(size) {
			return true, fmt.Errorf("%s is %v, expected %d bytes in base64", path, got, int(size))
		}
		return true, nil
	}
	if part, ok := want["$contains"].(string); ok {
		if !strings.Contains(text, part) {
			return true, fmt.Errorf("%s is %v, expected a text with %q", path, got, part)
		}
		return true, nil
	}
	if want["$set"] == true {
		if got == nil || isZero(got) {
			return true, fmt.Errorf("%s is empty, expected a value", path)
		}
		return true, nil
	}
	return false, nil
}

func isZero(value any) bool {
	return value == "" || value == false || value == float64(0)
}

// field returns the field of a reply with a path such as "cipherMetadata.nonce".
func field(reply map[string]any, path string) (any, error) {
	var value any = reply
	for name := range strings.SplitSeq(path, ".") {
		object, ok := value.(map[string]any)
		if !ok || object[name] == nil {
			return nil, fmt.Errorf("the reply has no field %q", path)
		}
		value = object[name]
	}
	return value, nil
}
