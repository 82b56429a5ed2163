// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

func TestEachSectionOfAProfileHasAComparison(t *testing.T) {
	rows := profile.Sections()
	for _, row := range rows {
		if comparers[row.Name] == nil {
			t.Errorf("%s has none: a change of it would never be weaker", row.Name)
		}
	}
	if len(comparers) != len(rows) {
		t.Errorf("there are %d comparisons for %d sections", len(comparers), len(rows))
	}
}
