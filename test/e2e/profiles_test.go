// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

// algorithms are all hash algorithms of the profile format, in an order in which no two neighbours are equal.
var algorithms = workload.Algorithms

// hashing is a profile that offers HashData alone.
func hashing(profileName, algorithm string) v1alpha1.ProfileSpec {
	return workload.Hashing(profileName, algorithm)
}

// createProfile makes the profile "Default" of a namespace.
func createProfile(t testing.TB, namespace, algorithm string) *v1alpha1.CryptoProfile {
	t.Helper()
	profile := &v1alpha1.CryptoProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: namespace},
		Spec:       hashing("Default", algorithm),
	}
	must(t, shared.client.Create(t.Context(), profile))
	return profile
}

// changeSpec changes the spec of a profile, which the operator may be changing as well: it writes the status.
func changeSpec(t *testing.T, profile *v1alpha1.CryptoProfile, change func(*v1alpha1.ProfileSpec)) {
	t.Helper()
	eventually(t, patience, "the profile is changed", func() error {
		if err := shared.client.Get(t.Context(), client.ObjectKeyFromObject(profile), profile); err != nil {
			return err
		}
		change(&profile.Spec)
		return shared.client.Update(t.Context(), profile)
	})
}

// changeHash writes another algorithm into a profile, and returns the time at which the write began. If the new algorithm is
// weaker, it allows the change as an administrator of the cluster.
func changeHash(t testing.TB, object client.Object, algorithm string) time.Time {
	t.Helper()
	began, err := shared.load.ChangeHash(t.Context(), object, algorithm)
	must(t, err)
	return began
}

// createSet makes a set of the given number of profiles. They are ClusterCryptoProfiles that only namespaces with the returned
// label get. Each offers to hash and to sign certificates, so that the set has the size of a real one. The first, returned, is
// "Default".
func createSet(t testing.TB, count int) (label map[string]string, first *v1alpha1.ClusterCryptoProfile) {
	t.Helper()
	name := "e2e-" + rand.String(6)
	label = map[string]string{"e2e.cryptobroker.io/set": name}
	for i := range count {
		profile := &v1alpha1.ClusterCryptoProfile{}
		profile.Name = fmt.Sprintf("%s-%d", name, i)
		profile.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: label}
		profile.Spec.ProfileSpec = hashing(fmt.Sprintf("Profile-%d", i), "sha-256")
		profile.Spec.API.SignCertificate = signing()
		if i == 0 {
			profile.Spec.ProfileName = "Default"
			first = profile
		}
		must(t, shared.client.Create(t.Context(), profile))
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := shared.client.Delete(ctx, profile); err != nil {
				t.Errorf("removing the profile %s: %v", profile.Name, err)
			}
		})
	}
	return label, first
}

// signing is a policy for certificates like those that the released distribution ships.
func signing() *v1alpha1.SignCertificate {
	return &v1alpha1.SignCertificate{
		SignAlg: "ecdsa", HashAlg: "sha-512",
		Validity: v1alpha1.Validity{ValidNotBeforeOffset: "-1h", ValidNotAfterOffset: "8760h"},
		KeyConstraints: v1alpha1.CertificateKeyConstraints{
			Subject: v1alpha1.KeyAlgorithms{
				RSA:   &v1alpha1.RSAKeySize{MinKeySize: 2048, MaxKeySize: 4096},
				ECDSA: &v1alpha1.ECDSAKeySize{MinKeySize: 256, MaxKeySize: 521},
			},
			Issuer: v1alpha1.KeyAlgorithms{ECDSA: &v1alpha1.ECDSAKeySize{MinKeySize: 384, MaxKeySize: 521}},
		},
		KeyUsage:         []string{"digitalSignature", "keyEncipherment"},
		ExtendedKeyUsage: []string{"clientAuth"},
	}
}

// awaitPropagated waits until the status of a namespace's profile counts that many pods, all of which serve it.
func awaitPropagated(t testing.TB, profile *v1alpha1.CryptoProfile, pods int32) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("the status of %s counts %d updated pods", profile.Name, pods), func() error {
		if err := shared.client.Get(t.Context(), client.ObjectKeyFromObject(profile), profile); err != nil {
			return err
		}
		status := profile.Status
		if status.ObservedGeneration != profile.Generation || status.Pods != pods || status.UpdatedPods != pods ||
			!meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionPropagated) {
			return fmt.Errorf("it is %+v at generation %d", status, profile.Generation)
		}
		return nil
	})
}
