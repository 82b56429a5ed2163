// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"fmt"
	"testing"
)

// seriesOfVersions returns how many versions of keys the metrics have.
func seriesOfVersions(t *testing.T, m *Metrics) int {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "crypto_broker_key_version_reads_total" {
			return len(family.GetMetric())
		}
	}
	return 0
}

func TestVersionsOfKeysAreCountedUpToALimitAndTheRestTogether(t *testing.T) {
	m := NewMetrics("test")
	m.ReadWith("orders", "")
	if found := seriesOfVersions(t, m); found != 0 {
		t.Errorf("a key without versions has %d series, want none", found)
	}
	for i := range 2 * maxKeyVersions {
		m.ReadWith("kms/orders", fmt.Sprint(i))
		m.ReadWith("kms/orders", fmt.Sprint(i))
	}
	if found := seriesOfVersions(t, m); found != maxKeyVersions+1 {
		t.Errorf("there are %d series, want %d and one for the others", found, maxKeyVersions)
	}
	if first := m.keyVersions.count(keyVersion{"kms/orders", "0"}).Load(); first != 2 {
		t.Errorf("the first version was read %d times, want 2", first)
	}
	if others := m.keyVersions.other.Load(); others != 2*maxKeyVersions {
		t.Errorf("others were read %d times, want %d", others, 2*maxKeyVersions)
	}
}
