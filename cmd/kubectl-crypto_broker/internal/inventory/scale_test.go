// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"fmt"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers/brokerstest"
)

// The API server of the benchmark answers from memory, in the same process. So it measures only the plugin, and no network.
func BenchmarkInventoryOf10000Pods(b *testing.B) {
	c := brokerstest.Cluster{}
	for n := range 20 {
		pods := map[string]any{}
		for i := range 500 {
			pods[fmt.Sprintf("app%d-%d", i%50, i)] = counted(
				used("orders", "SignData", "rsa-with-sha-256", 5, "RSA 2048"), used("orders", "HashData", "sha-512", 1), used("orders", "EncryptData", "aes-gcm", 7, "AES 256"))
		}
		c.AddNamespace(fmt.Sprintf("team-%d", n), nil, nil, pods)
	}
	for b.Loop() {
		if found := makeInventory(b, c); found.Answered != 10000 || len(found.Uses) != 3000 || len(found.Unknown) != 0 {
			b.Fatalf("%d brokers answered, with %d uses; not known: %v", found.Answered, len(found.Uses), found.Unknown)
		}
	}
}
