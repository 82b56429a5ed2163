// SPDX-License-Identifier: Apache-2.0

package tdfpolicy

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Policy has the requirements of a file on its readers.
type Policy struct {
	// ID is the policy's UUID, as the file has it.
	ID string
	// Attributes are fully qualified names in lower case: OpenTDF compares them without regard
	// to case.
	Attributes []string
	// Recipients are who may read the file. Everybody may if there are none.
	Recipients []string
}

// Parse reads a policy as files and requests have it: JSON in base64.
func Parse(body string) (Policy, error) {
	text, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		return Policy{}, errors.New("the policy is not in base64")
	}
	var found struct {
		UUID string `json:"uuid"`
		Body *struct {
			DataAttributes []struct {
				Attribute string `json:"attribute"`
			} `json:"dataAttributes"`
			Dissem []string `json:"dissem"`
		} `json:"body"`
	}
	if err := json.Unmarshal(text, &found); err != nil || found.Body == nil {
		return Policy{}, errors.New("the policy is no JSON object with a body")
	}
	if repeats(json.NewDecoder(bytes.NewReader(text))) {
		return Policy{}, errors.New("the policy has a member twice")
	}
	p := Policy{ID: found.UUID, Recipients: found.Body.Dissem}
	for _, attribute := range found.Body.DataAttributes {
		if attribute.Attribute == "" {
			return Policy{}, errors.New("the policy has an attribute without a name")
		}
		p.Attributes = append(p.Attributes, strings.ToLower(attribute.Attribute))
	}
	return p, nil
}

// repeats reports whether an object in a JSON text has two members of the same name, ignoring case. Such a text is refused,
// because services could read different attributes in it: [json.Unmarshal] ignores the case of names and takes the last member.
// The text must be valid JSON that is not nested deeply.
func repeats(text *json.Decoder) bool {
	token, _ := text.Token()
	delimiter, nested := token.(json.Delim)
	if !nested {
		return false
	}
	seen := map[string]bool{}
	for text.More() {
		if delimiter == '{' {
			name, _ := text.Token()
			folded := strings.ToLower(strings.ToUpper(fmt.Sprint(name)))
			if seen[folded] {
				return true
			}
			seen[folded] = true
		}
		if repeats(text) {
			return true
		}
	}
	_, _ = text.Token() // the end of the object or list
	return false
}
