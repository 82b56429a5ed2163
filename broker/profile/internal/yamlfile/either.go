// SPDX-License-Identifier: Apache-2.0

package yamlfile

import "reflect"

// TextOrMap is nil, a string, or a map[string]any of values of any form.
type TextOrMap any

// BoolOrMap is nil, a bool, or a map[string]any of values of any form.
type BoolOrMap any

// plain returns the type of a [TextOrMap] or a [BoolOrMap] that is not a map.
func plain(t reflect.Type) reflect.Type {
	if t == reflect.TypeFor[BoolOrMap]() {
		return reflect.TypeFor[bool]()
	}
	return reflect.TypeFor[string]()
}
