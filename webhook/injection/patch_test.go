// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/patch"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

func TestAPatchThatTakesOutThousandsOfMountsIsShort(t *testing.T) {
	pod := fixture.PodWith(fixture.Stamped, fixture.MountsOf(10_000, corev1.VolumeMount{Name: contract.SocketVolume}))
	injected, _, err := Inject(pod, "shop", []byte(fixture.ProfilesOfShop), testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	if operations := patch.Between(pod, injected); len(operations) > 100 {
		t.Errorf("the patch has %d operations", len(operations))
	}
	if patched := fixture.Patched(t, fixture.JSON(t, pod), pod, injected); !fixture.EqualJSON(t, patched, fixture.JSON(t, injected)) {
		t.Errorf("the patch makes %s", patched)
	}
}
