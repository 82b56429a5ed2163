// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

func TestOperationsAreThoseOfTheTableOfProfiles(t *testing.T) {
	var names []string
	for op := range engine.Operations {
		names = append(names, engine.Operation(op).String())
	}
	if table := profile.Operations(); !slices.Equal(names, table) {
		t.Errorf("found %q, the table has %q", names, table)
	}
}
