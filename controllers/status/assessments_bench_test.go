// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	manifests "github.com/crypto-broker/crypto-broker-operator/config/samples/catalogue"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
)

// The cost of the statuses of a namespace in which only the number of pods has changed, with and without the cache of assessments.
func BenchmarkTheStatusesOf500Profiles(b *testing.B) {
	manifest, err := manifests.Manifests.ReadFile("default.yaml")
	if err != nil {
		b.Fatal(err)
	}
	profiles := make([]v1alpha1.ClusterCryptoProfile, 500)
	for i := range profiles {
		if err := yaml.Unmarshal(manifest, &profiles[i]); err != nil {
			b.Fatal(err)
		}
		profiles[i].UID, profiles[i].Generation = types.UID(fmt.Sprint(i)), 1
	}
	fill := func(c conditions) {
		for i := range profiles {
			p := &profiles[i]
			c.fill(p.Status.ProfileStatus.DeepCopy(), p, &p.Spec.ProfileSpec, valid, distribute.Summary{Pods: 3, Updated: 3})
		}
	}
	b.Run("remembered", func(b *testing.B) {
		c := conditions{assessments: newAssessments()}
		fill(c)
		for b.Loop() {
			fill(c)
		}
	})
	b.Run("assessed each time", func(b *testing.B) {
		for b.Loop() {
			fill(conditions{assessments: newAssessments()})
		}
	})
}
