// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/check"
)

// fixtureInstallation is an installation of an operator for one namespace: the objects of the chart,
// and a server that answers the API server as the operator does.
type fixtureInstallation struct {
	// namespace is the namespace that the operator injects into, and operator is the namespace of the operator.
	namespace, operator string
	// name is the name of the release.
	name string
	// renews is closed to end the renewal of the Lease.
	renews chan struct{}
	server *httptest.Server
}

// authority makes a self-signed certificate for a host.
func authority(t *testing.T, host string) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// install makes an installation without problems.
func install(t *testing.T) *fixtureInstallation {
	t.Helper()
	in := &fixtureInstallation{namespace: uncovered(t), operator: uncovered(t), renews: make(chan struct{})}
	in.name = "sound-" + in.operator
	certificate, bundle := authority(t, "webhook."+in.operator+".svc")
	mux := http.NewServeMux()
	mux.Handle("/pods", injecting())
	mux.Handle("/profiles", &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		return admission.Denied("spec.api.signCertificate.subjectAltNames.dns[0]: it is no pattern")
	})})
	in.server = httptest.NewUnstartedServer(mux)
	in.server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	in.server.StartTLS()
	t.Cleanup(in.server.Close)
	in.deploy(t)
	in.call(t, bundle)
	in.enforce(t)
	admitted(t, in.namespace, "it has a broker", func(pod *corev1.Pod, err error) bool {
		if err == nil && injected.Broker(pod) != nil {
			in.template(t, pod.Annotations[contract.InjectedAnnotation])
			return true
		}
		return false
	})
	return in
}

// deploy makes the objects of the operator's namespace.
func (in *fixtureInstallation) deploy(t *testing.T) {
	t.Helper()
	labels := map[string]string{"app": in.name}
	makeDeployment(t, in.operator, in.name, func(d *appsv1.Deployment) {
		d.Labels = map[string]string{"app.kubernetes.io/part-of": "crypto-broker", "app.kubernetes.io/version": "0.9.0"}
		d.Spec.Replicas, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = new(int32(2)), labels, labels
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "operator", Image: "operator:0.9.0", Args: []string{
			"--signing-secret-name=signing", "--injection-template=" + in.name, "--broker-image=broker:1",
		}}}
	})
	in.available(t, 2)
	host, port, err := net.SplitHostPort(in.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the operator answers at %s, port %s", host, port)
	_, err = apiServer.CoreV1().Services(in.operator).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "webhook"},
		// The API server connects to this name with the port of the webhook configuration.
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost", Selector: labels},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = apiServer.DiscoveryV1().EndpointSlices(in.operator).Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "webhook-1", Labels: map[string]string{discoveryv1.LabelServiceName: "webhook"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}, {Addresses: []string{"10.0.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = apiServer.CoreV1().Secrets(in.operator).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "signing", Annotations: map[string]string{
		"cryptobroker.io/signing-key-current-since": time.Now().UTC().Format(time.RFC3339),
	}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	leases := apiServer.CoordinationV1().Leases(in.operator)
	lease, err := leases.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.LeaderElectionLease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("replica-1"), LeaseDurationSeconds: new(int32(3)), RenewTime: new(metav1.NowMicro())},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-in.renews:
				return
			case <-time.After(200 * time.Millisecond):
			}
			lease.Spec.RenewTime = new(metav1.NowMicro())
			if renewed, err := leases.Update(context.Background(), lease, metav1.UpdateOptions{}); err == nil {
				lease = renewed
			}
		}
	}()
	t.Cleanup(func() {
		in.resign()
		<-done
	})
}

// resign ends the renewal of the Lease.
func (in *fixtureInstallation) resign() {
	select {
	case <-in.renews:
	default:
		close(in.renews)
	}
}

// available sets the number of available replicas in the status of the operator's Deployment.
func (in *fixtureInstallation) available(t *testing.T, n int32) {
	t.Helper()
	d, err := apiServer.AppsV1().Deployments(in.operator).Get(t.Context(), in.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: n, AvailableReplicas: n}
	if _, err := apiServer.AppsV1().Deployments(in.operator).UpdateStatus(t.Context(), d, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// call makes the webhook configurations.
func (in *fixtureInstallation) call(t *testing.T, bundle []byte) {
	t.Helper()
	port := int32(in.server.Listener.Addr().(*net.TCPAddr).Port)
	client := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{CABundle: bundle, Service: &admissionregistrationv1.ServiceReference{
			Namespace: in.operator, Name: "webhook", Path: &path, Port: &port,
		}}
	}
	none, fail, ignore := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Fail, admissionregistrationv1.Ignore
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: in.namespace}}
	rules := func(group, version, resource string, operation admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{operation},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
		}}
	}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: in.name}}
	for _, name := range []string{"labelled", "annotated"} {
		mutating.Webhooks = append(mutating.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name: name + ".inject.cryptobroker.io", SideEffects: &none, AdmissionReviewVersions: []string{"v1"}, FailurePolicy: &fail,
			NamespaceSelector: selector, ClientConfig: client("/pods"), Rules: rules("", "v1", "pods", admissionregistrationv1.Create),
		})
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: in.name}}
	for kind, resources := range map[string]string{
		"cryptoprofile": "cryptoprofiles", "clustercryptoprofile": "clustercryptoprofiles",
		"keyprovider": "keyproviders", "clusterkeyprovider": "clusterkeyproviders",
		"keyaccesspolicy": "keyaccesspolicies", "keyaccesspeer": "keyaccesspeers",
	} {
		operations := map[string]admissionregistrationv1.OperationType{kind: admissionregistrationv1.Create}
		if strings.HasSuffix(kind, "cryptoprofile") {
			operations[kind+".delete"] = admissionregistrationv1.Delete
		}
		for name, operation := range operations {
			policy := &fail
			if operation == admissionregistrationv1.Delete {
				policy = &ignore
			}
			validating.Webhooks = append(validating.Webhooks, admissionregistrationv1.ValidatingWebhook{
				Name: name + ".validate.cryptobroker.io", SideEffects: &none, AdmissionReviewVersions: []string{"v1"}, FailurePolicy: policy,
				NamespaceSelector: selector, ClientConfig: client("/profiles"), Rules: rules("cryptobroker.io", "v1alpha1", resources, operation),
			})
		}
	}
	objects := apiServer.AdmissionregistrationV1()
	if _, err := objects.MutatingWebhookConfigurations().Create(t.Context(), mutating, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := objects.ValidatingWebhookConfigurations().Create(t.Context(), validating, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, err := range []error{
			objects.MutatingWebhookConfigurations().Delete(context.Background(), in.name, metav1.DeleteOptions{}),
			objects.ValidatingWebhookConfigurations().Delete(context.Background(), in.name, metav1.DeleteOptions{}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// enforce creates policies with the names of the chart's policies. These policies match no objects.
func (in *fixtureInstallation) enforce(t *testing.T) {
	t.Helper()
	objects := apiServer.AdmissionregistrationV1()
	for short, action := range check.InstalledPolicies {
		name := in.name + "-" + short
		_, err := objects.ValidatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"none.example"}, APIVersions: []string{"v1"}, Resources: []string{"nothings"}},
				}}}},
				Validations: []admissionregistrationv1.Validation{{Expression: "true"}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = objects.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{action}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			// A test may have deleted the policies.
			_ = objects.ValidatingAdmissionPolicyBindings().Delete(context.Background(), name, metav1.DeleteOptions{})
			_ = objects.ValidatingAdmissionPolicies().Delete(context.Background(), name, metav1.DeleteOptions{})
		})
	}
}

// template makes the InjectionTemplate, as the operator does.
func (in *fixtureInstallation) template(t *testing.T, stamp string) {
	t.Helper()
	const path = "/apis/cryptobroker.io/v1alpha1/injectiontemplates"
	body := fmt.Sprintf(`{"apiVersion":%q,"kind":"InjectionTemplate","metadata":{"name":%q},"spec":{"container":{"name":"crypto-broker","image":"broker:1"},"volumes":[],"firstArguments":[],"socketGroup":7,"statusPort":9470,"stamp":%q}}`,
		v1alpha1.GroupVersion, in.name, stamp)
	if err := apiServer.CoreV1().RESTClient().Post().AbsPath(path).Body([]byte(body)).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// A test may have deleted the template.
		_ = apiServer.CoreV1().RESTClient().Delete().AbsPath(path, in.name).Do(context.Background()).Error()
	})
}
