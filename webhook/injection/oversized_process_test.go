// SPDX-License-Identifier: Apache-2.0

//go:build process

package injection

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// The allocations for a pod are bounded by a multiple of its size. A list within a list would exceed that multiple by far.
func TestAPodCostsInProportionToItsSize(t *testing.T) {
	for what, pod := range fixture.Oversized(injectedPodWith(t).Spec.InitContainers[0]) {
		t.Run(what, func(t *testing.T) {
			size := uint64(len(fixture.JSON(t, pod)))
			begin := time.Now()
			allocated, warnings, err := allocatedBy(func() (*corev1.Pod, []string, error) {
				return Inject(pod, "shop", []byte(fixture.ProfilesOfShop), testTemplate())
			})
			t.Logf("%d bytes sent, %d allocated", size, allocated)
			if most := 80*size + 1<<20; allocated > most {
				t.Errorf("%d bytes were allocated for %d bytes that were sent, expected at most %d", allocated, size, most)
			}
			if took := time.Since(begin); took > 4*time.Second {
				t.Errorf("it took %s", took)
			}
			if err != nil {
				expectBounded(t, err.Error())
			}
			expectBounded(t, strings.Join(warnings, "\n"))
		})
	}
}

// expectBounded fails the test if a text is too long for an answer, or is cut within a character.
func expectBounded(t *testing.T, text string) {
	t.Helper()
	if len(text) > 4<<10 {
		t.Errorf("the text has %d bytes, expected at most %d", len(text), 4<<10)
	}
	if !utf8.ValidString(text) {
		t.Errorf("the text was cut inside of a character: %q", text)
	}
}

// allocatedBy returns how many bytes a call allocates in all.
func allocatedBy(call func() (*corev1.Pod, []string, error)) (bytes uint64, warnings []string, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, warnings, err = call()
	runtime.ReadMemStats(&after)
	var refusal *Refusal
	if err != nil && !errors.As(err, &refusal) {
		panic(err)
	}
	return after.TotalAlloc - before.TotalAlloc, warnings, err
}
