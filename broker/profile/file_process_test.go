// SPDX-License-Identifier: Apache-2.0

//go:build process

package profile_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// TestARenderedDocumentReadsBackAsItself fills documents at random, seeded so
// that a failure can be had again.
func TestARenderedDocumentReadsBackAsItself(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 0))
		doc := &profile.Document{}
		fill(r, reflect.ValueOf(doc).Elem())
		assertRoundTrip(t, doc)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
