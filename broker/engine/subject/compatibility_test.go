// SPDX-License-Identifier: Apache-2.0

package subject_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine/subject"
)

// releasedTakes reports whether a released broker accepts a subject: parts between commas, each with a type that it knows, "=" and
// any text.
func releasedTakes(text string) bool {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, _, found := strings.Cut(part, "=")
		if !found || !slices.Contains([]string{"C", "ST", "O", "OU", "L", "CN"}, strings.TrimSpace(name)) {
			return false
		}
	}
	return true
}

func TestSubjectsAreTakenOrRefusedAsThePageOnCompatibilitySays(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([^`]*=[^`]*)` \\| (taken|refused)[^|]*\\| (taken|refused)[^|]*\\|").FindAllStringSubmatch(string(page), -1)
	if len(rows) != 11 {
		t.Fatalf("the page has %d subjects, expected 11: %q", len(rows), rows)
	}
	verdict := map[bool]string{true: "taken", false: "refused"}
	for _, row := range rows {
		text, released, here := row[1], row[2], row[3]
		t.Run(text, func(t *testing.T) {
			if got := verdict[releasedTakes(text)]; got != released {
				t.Errorf("released brokers: %s, the page says %s", got, released)
			}
			if _, err := subject.Parse(text); verdict[err == nil] != here {
				t.Errorf("here: %s (%v), the page says %s", verdict[err == nil], err, here)
			}
		})
	}
}
