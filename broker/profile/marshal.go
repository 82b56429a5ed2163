// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Marshal renders a document in the oldest form that can express it: the bare
// list that every released broker reads, or, where the document has settings
// for the whole file or a field that released brokers do not know, the map form
// with the FormatVersion it needs. A released broker cannot read the map form
// at all, so it never overlooks a restriction.
//
// The same document always yields the same bytes, and Parse of them yields the
// document again, with FormatVersion set to what is needed.
func Marshal(doc *Document) ([]byte, error) {
	version := 0
	for i := range doc.Profiles {
		version = max(version, doc.Profiles[i].FormatVersion())
	}
	var root any
	profiles := doc.Profiles
	if profiles == nil {
		profiles = []Profile{}
	}
	if version == 0 && doc.Settings == nil && doc.KMS == nil {
		root = profiles
	} else {
		root = &Document{FormatVersion: version, Settings: doc.Settings, KMS: doc.KMS, Profiles: profiles}
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("render profiles: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("render profiles: %w", err)
	}
	return out.Bytes(), nil
}
