// SPDX-License-Identifier: Apache-2.0

package annotation

import "strings"

// CELString writes a text as CEL does.
func CELString(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// CELList writes a list of texts as CEL does.
func CELList(texts []string) string {
	written := make([]string, len(texts))
	for i, text := range texts {
		written[i] = CELString(text)
	}
	return "[" + strings.Join(written, ", ") + "]"
}
