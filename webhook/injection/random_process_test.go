// SPDX-License-Identifier: Apache-2.0

//go:build process

package injection

import (
	"fmt"
	"testing"
)

func TestInjectSpoilsNoneOfFiveHundredRandomPods(t *testing.T) {
	for seed := range int64(500) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { injectARandomPod(t, seed) })
	}
}
