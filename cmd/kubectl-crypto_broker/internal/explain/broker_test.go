// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers/brokerstest"
)

func TestAPodThatIsOlderThanTheFirstKeyOfAKeyProviderIsToBeReplaced(t *testing.T) {
	const set = "- Name: P\n"
	calling := func(pod *corev1.Pod) {
		broker := &pod.Spec.InitContainers[0]
		broker.Args = append(broker.Args, contract.Argument(contract.KeyGatewayFlag, "gateway:443"))
	}
	for sentence, test := range map[string]struct {
		authorities string
		pod         *corev1.Pod
		so, advice  string
	}{
		"a pod without a token, and keys of key providers": {"PEM", brokerstest.BrokerPod(), "which cannot use the keys of key providers", "Restart it."},
		"a pod with a token, and keys of key providers":    {"PEM", brokerstest.BrokerPod(calling), "", ""},
		"a pod without a token, and no such keys":          {"", brokerstest.BrokerPod(), "", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			found := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: map[string]string{profile.FileName: set}}
			if test.authorities != "" {
				found.Data[contract.KeyGatewayAuthorities] = test.authorities
			}
			client := answers(t, map[string]any{
				"/api/v1/namespaces/shop/pods/http:orders:9470/proxy/profiles":     map[string]any{"digest": profile.Digest([]byte(set)), "revision": 1},
				"/api/v1/namespaces/shop/configmaps/" + v1alpha1.ProfilesConfigMap: found,
			})
			so, advice := explainBroker(t.Context(), client, test.pod, nil, "Restart it.", &explanation{})
			if so != test.so || advice != test.advice {
				t.Errorf("found %q and %q, expected %q and %q", so, advice, test.so, test.advice)
			}
		})
	}
}
