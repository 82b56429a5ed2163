// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package webhook

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// usePolicies gives the policies for final pods the content that the chart has with values.
func usePolicies(ctx context.Context, t *testing.T, values string) {
	t.Helper()
	objects, err := apiserver.FromChart(ctx, access, "templates/policies/injected.yaml", values)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		before := &unstructured.Unstructured{}
		before.SetGroupVersionKind(object.GroupVersionKind())
		if err := admin.Get(ctx, client.ObjectKeyFromObject(object), before); err != nil {
			t.Fatal(err)
		}
		after := before.DeepCopy()
		after.Object["spec"] = object.Object["spec"]
		if err := admin.Update(ctx, after); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheCertificateOfABrokerIsPartOfTheFinalPod(t *testing.T) {
	if !apiserver.ServesPodCertificates(t, access) {
		return // older API servers have no such volume, and the chart refuses the value there
	}
	usePolicies(t.Context(), t, "keyGateway.enabled=true,keyGateway.brokerCertificates=issued")
	t.Cleanup(func() { usePolicies(context.Background(), t, "keyGateway.enabled=true") })
	template := testTemplate()
	template.KeyGateway, template.BrokerCertificates = "gateway.system.svc:8443", true
	startOperatorWith(t, Options{Template: template})
	pod := fixture.PodWith(func(pod *corev1.Pod) { pod.Spec.ServiceAccountName = "default" })
	other := &meddler{decoder: admission.NewDecoder(apiServerScheme())}
	namespace := serveOtherInjector(t, "certificate-meddler", other)
	source := func(change func(*corev1.PodCertificateProjection)) func(*corev1.Pod) {
		return inKeyGatewayVolume(func(p *corev1.ProjectedVolumeSource) { change(p.Sources[2].PodCertificate) })
	}
	const volumes, arguments = "spec.volumes: found a volume of the broker that is not the one", "spec.initContainers: found arguments of the container"
	other.change = source(func(p *corev1.PodCertificateProjection) { p.SignerName = "example.com/other" })
	eventually(t, "the policy compares the source of the certificate", func() error {
		if _, err := tryPod(t, namespace, pod); err == nil || !strings.Contains(err.Error(), volumes) {
			return errNotCalled
		}
		return nil
	})
	for sentence, test := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"nothing else":             {func(*corev1.Pod) {}, ""},
		"another signer":           {source(func(p *corev1.PodCertificateProjection) { p.SignerName = "example.com/other" }), volumes},
		"another file":             {source(func(p *corev1.PodCertificateProjection) { p.CredentialBundlePath = "other.pem" }), volumes},
		"no certificate":           {inKeyGatewayVolume(func(p *corev1.ProjectedVolumeSource) { p.Sources = p.Sources[:2] }), volumes},
		"a file that is elsewhere": {changeArgument("--key-gateway-certificate=", "--key-gateway-certificate=/tmp/certificate.pem"), arguments},
	} {
		t.Run(sentence, func(t *testing.T) {
			other.change = func(pod *corev1.Pod) {
				if len(pod.Spec.InitContainers) > 0 && pod.Spec.InitContainers[0].Name == contract.BrokerContainer {
					test.change(pod)
				}
			}
			_, err := tryPod(t, namespace, pod)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("found %v, expected no refusal", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("found %v, expected a refusal with %s", err, test.want)
			}
		})
	}
}
