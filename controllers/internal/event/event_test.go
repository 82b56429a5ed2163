// SPDX-License-Identifier: Apache-2.0

package event

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTextsAreTruncatedBetweenCharacters(t *testing.T) {
	text := strings.Repeat("ä", 600)
	for most := 1015; most < 1025; most++ {
		found := Truncate(text, most)
		if len(found) > most || len(found) < most-2 || !utf8.ValidString(found) || !strings.HasSuffix(found, " …") {
			t.Errorf("cut to %d bytes it has %d and ends with %q", most, len(found), found[len(found)-8:])
		}
	}
	if found := Truncate(text, 1200); found != text {
		t.Error("a text that fits was cut")
	}
}
