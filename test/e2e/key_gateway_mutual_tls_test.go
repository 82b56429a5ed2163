// SPDX-License-Identifier: Apache-2.0

//go:build e2e && keymanagers

package e2e

import (
	"crypto/tls"
	"path"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// Here tokens are valid from every address. So only the certificate can stop a stolen token.
func TestPodsEncryptUnderAKeyWithCertificatesWithoutWhichAStolenTokenIsRefused(t *testing.T) {
	users := startGatewayUsers(t, "keyGateway.brokerCertificates=required", "keyGateway.checkPodAddress=false")
	victim, thief := &users.apps[0], &users.apps[1]
	awaitKeyProviderReady(t)
	during(t, users.apps, "brokers present their certificates", func() { awaitEncryption(t, users.apps, 20) }).expectNoFailure(t)
	expectOneSignedRequest(t, victim)

	token := tokenOf(t, victim)
	if err := callGateway(t, users.namespace, token); status.Code(err) != codes.Unavailable {
		t.Errorf("without a certificate, the call ends with %v, expected Unavailable: there is no connection", err)
	}
	err := callGateway(t, users.namespace, token, certificateOf(t, thief))
	if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "the certificate of the connection does not belong to the pod of the token") {
		t.Errorf("with the certificate of another pod, the gateway answers %v", err)
	}
	if err := callGateway(t, users.namespace, token, certificateOf(t, victim)); err != nil {
		t.Errorf("with token and certificate of one pod, the gateway answers %v, expected the key", err)
	}
	expectNeverRestarted(t, users.apps)
	uninstallGateway(t)
}

// certificateOf returns the certificate of a pod's broker from the pod's volume on the node.
func certificateOf(t testing.TB, pod *corev1.Pod) tls.Certificate {
	t.Helper()
	bundle, err := shared.cluster.Exec(t.Context(), "cat", path.Join("/var/lib/kubelet/pods", string(pod.UID), "volumes/kubernetes.io~projected",
		contract.KeyGatewayVolume, contract.KeyGatewayCertificate))
	must(t, err)
	pair, err := tls.X509KeyPair([]byte(bundle), []byte(bundle))
	must(t, err)
	return pair
}

// expectOneSignedRequest checks the request that the kubelet made for a pod.
func expectOneSignedRequest(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	found, err := shared.clientset.CertificatesV1().PodCertificateRequests(pod.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.podName=" + pod.Name})
	must(t, err)
	if len(found.Items) != 1 || found.Items[0].Spec.SignerName != contract.BrokerSigner || !meta.IsStatusConditionTrue(found.Items[0].Status.Conditions, "Issued") {
		t.Errorf("found the requests %+v, expected a signed one", found.Items)
	}
}
