// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

func TestAssessmentsAreKeptInALimitedNumberAndThoseThatAreUsedLongest(t *testing.T) {
	profile := func(uid string, algorithm string) *v1alpha1.CryptoProfile {
		return &v1alpha1.CryptoProfile{
			ObjectMeta: metav1.ObjectMeta{Name: "orders", UID: types.UID(uid), Generation: 1},
			Spec:       v1alpha1.ProfileSpec{API: v1alpha1.Operations{HashData: &v1alpha1.HashData{HashAlg: algorithm}}},
		}
	}
	all := newAssessments()
	used, other := profile("used", "sha-256"), profile("used", "sha-512")
	want := *all.of(used, &used.Spec).Strength
	for i := range 2 * keptAssessments {
		p := assessed{generation: 1}
		all.keep(types.UID(fmt.Sprint(i)), p)
		if i%1000 == 0 { // the cached value is used, even if the object has changed
			if found := *all.of(other, &other.Spec).Strength; found != want {
				t.Fatalf("after %d others the strength is %d, expected the one remembered, %d", i, found, want)
			}
		}
		if kept := len(all.recent) + len(all.former); kept > keptAssessments {
			t.Fatalf("%d are kept, expected %d at most", kept, keptAssessments)
		}
	}
	invalid := profile("invalid", "md5")
	for range 2 {
		if found := all.of(invalid, &invalid.Spec).Problems; len(found) != 1 {
			t.Errorf("found the problems %v, expected one", found)
		}
	}
	other.Generation = 2
	if found := *all.of(other, &other.Spec).Strength; found == want {
		t.Errorf("after a change the strength is %d as before", found)
	}
}
