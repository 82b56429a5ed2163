// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

func TestABadProfileIsRefusedByKubectlApplyWithTheFieldNamed(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	for sentence, each := range map[string]struct {
		spec string
		says []string
	}{
		"an algorithm that does not exist": {"{api: {hashData: {hashAlg: sha-1}}}", []string{"spec.api.hashData.hashAlg", "sha-1", "sha3-512"}},
		"a field that does not exist":      {"{api: {hashData: {hashAlg: sha-256, rounds: 3}}}", []string{"spec.api.hashData.rounds"}},
		"a profile that offers nothing":    {"{api: {}}", []string{"spec.api"}},
		"a validity that ends before it began": {`{api: {signCertificate: {signAlg: ecdsa, hashAlg: sha-256,
			validity: {validNotBeforeOffset: 2h, validNotAfterOffset: 1h},
			keyConstraints: {subject: {ecdsa: {minKeySize: 256, maxKeySize: 521}}, issuer: {ecdsa: {minKeySize: 256, maxKeySize: 521}}}}}}`,
			[]string{"spec.api.signCertificate.validity"}},
		"a range of key sizes that is empty": {`{api: {signCertificate: {signAlg: ecdsa, hashAlg: sha-256,
			validity: {validNotBeforeOffset: -1h, validNotAfterOffset: 1h},
			keyConstraints: {subject: {ecdsa: {minKeySize: 521, maxKeySize: 256}}, issuer: {ecdsa: {minKeySize: 256, maxKeySize: 521}}}}}}`,
			[]string{"spec.api.signCertificate.keyConstraints.subject.ecdsa"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			manifest := fmt.Sprintf("apiVersion: cryptobroker.io/v1alpha1\nkind: CryptoProfile\nmetadata: {name: bad}\nspec: %s\n", each.spec)
			_, err := kubectl(t, manifest, "-n", namespace, "apply", "-f", "-")
			expectRefused(t, err, each.says...)
		})
	}
}

func TestABrokenFileDoesNotReplaceAGoodSet(t *testing.T) {
	namespace := newNamespace(t, nil)
	profile := createProfile(t, namespace, "sha3-512")
	pod := createPod(t, appPod(namespace, inject("true"), nil))
	awaitPropagated(t, profile, 1)
	good, err := brokerProfiles(t, pod)
	must(t, err)

	// Only the operator can write the file, so the test writes it as the operator while the operator does not run.
	stopOperator(t)
	operator := as(t, environment.OperatorUser,
		"system:serviceaccounts", "system:serviceaccounts:"+environment.Namespace)
	broken := profilesConfigMap(t, namespace)
	broken.Data["Profiles.yaml"] = "- Name: Default\n  API: {HashData: {HashAlg: "
	must(t, operator.Update(t.Context(), broken))
	wake(t, operator, pod)
	eventually(t, patience, "the broker says that it refused the newer set", func() error {
		found, err := brokerProfiles(t, pod)
		if err == nil && (found.Reason != "SignatureRejected" || found.Digest != good.Digest) {
			err = fmt.Errorf("it says %+v", found)
		}
		return err
	})
	before := mustStats(t, pod)
	after := awaitCalls(t, pod, statsPort, before, 30)
	expectNoFailure(t, pod, after)
	if len(after.Observed) != 1 || after.Algorithm != "sha3-512" {
		t.Errorf("found the algorithms %+v, expected sha3-512 alone", after.Observed)
	}

	startOperator(t)
	eventually(t, patience, "the operator has put the good set back", func() error {
		if found := profilesConfigMap(t, namespace); found.Data["Profiles.yaml"] == broken.Data["Profiles.yaml"] {
			return fmt.Errorf("the ConfigMap still holds %q", found.Data["Profiles.yaml"])
		}
		return nil
	})
	awaitAlgorithm(t, pod, "sha-256", changeHash(t, profile, "sha-256"), changeTimeout)
	awaitPropagated(t, profile, 1)
	if found, err := brokerProfiles(t, pod); err != nil || found.Reason != "Loaded" {
		t.Errorf("found that the broker says %+v (%v), expected the reason Loaded", found, err)
	}
	expectNoFailure(t, pod, mustStats(t, pod))
}

// wake makes the kubelet look at a pod's ConfigMap now, as the operator does.
func wake(t testing.TB, operator client.Client, pod *corev1.Pod) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"e2e.%d"}}}`, contract.ProfilesDigestAnnotation, time.Now().UnixNano())
	must(t, operator.Status().Patch(t.Context(), pod.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch))))
}
