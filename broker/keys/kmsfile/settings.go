// SPDX-License-Identifier: Apache-2.0

package kmsfile

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// settings are the content of a file.
type settings struct{ address, token, mount string }

// parse reads a file. Its error continues a sentence that begins with the file. It quotes no part
// of the file, because the file contains a token.
func parse(text []byte) (settings, error) {
	var fields map[string]string
	if err := yaml.Unmarshal(text, &fields); err != nil {
		return settings{}, errors.New("is not a map of text in YAML, expected address, token and mount")
	}
	s := settings{fields["address"], fields["token"], fields["mount"]}
	var missing []string
	for _, name := range []string{"address", "token", "mount"} {
		if fields[name] == "" {
			missing = append(missing, name)
		}
		delete(fields, name)
	}
	switch {
	case len(missing) > 0:
		return settings{}, fmt.Errorf("has no %s, expected address, token and mount", strings.Join(missing, " and no "))
	case len(fields) > 0:
		return settings{}, errors.New("has other fields, expected only address, token and mount")
	}
	return s, nil
}
