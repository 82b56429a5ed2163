// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// Policy is what a file demands of whoever reads it.
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
	p := Policy{ID: found.UUID, Recipients: found.Body.Dissem}
	for _, attribute := range found.Body.DataAttributes {
		if attribute.Attribute == "" {
			return Policy{}, errors.New("the policy has an attribute without a name")
		}
		p.Attributes = append(p.Attributes, strings.ToLower(attribute.Attribute))
	}
	return p, nil
}
