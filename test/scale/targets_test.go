// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"
)

func TestALateKubeletDoesNotHideThatTheOperatorWasInTime(t *testing.T) {
	large := result{step: step{id: stepLarge, name: "one profile changes", pods: 1000}, last: 4 * time.Second, served: 5100 * time.Millisecond}
	cluster := result{step: step{id: stepCluster, name: "one ClusterCryptoProfile changes", pods: 10_000}, last: 61 * time.Second, served: 62 * time.Second}
	r := &results{steps: []result{large, cluster}}
	text := r.markdown()
	for _, want := range []string{
		"| one profile changes, 1,000 pods: the last pod is annotated | ≤ 5.00 s | 4.00 s | met |",
		"| one profile changes, 1,000 pods: the last broker serves the set, with the kubelet's time | ≤ 5.00 s | 5.10 s | **missed** |",
		"| one ClusterCryptoProfile changes, 10,000 pods: the last pod is annotated | ≤ 60.00 s | 61.00 s | **missed** |",
		"| one ClusterCryptoProfile changes, 10,000 pods: the last broker serves the set, with the kubelet's time | ≤ 60.00 s | 62.00 s | **missed** |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report has no %q:\n%s", want, text)
		}
	}
}
