// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Marshal writes a document in the oldest form that can express it. That is the list of
// profiles, which every released broker reads. If the document has settings for the whole
// file, or a field that released brokers do not know, it is the map with the FormatVersion
// that it needs. A released broker does not read the map at all, so it never overlooks a
// restriction.
//
// The same document always gives the same bytes. [Parse] of the bytes gives the document
// again, with the FormatVersion that it needs.
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
