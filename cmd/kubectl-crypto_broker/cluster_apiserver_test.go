// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
)

var (
	// apiServer is the client of the tests, with all rights.
	apiServer kubernetes.Interface
	// apiServerConfig is the configuration with which the tests reach the API server.
	apiServerConfig *rest.Config
	// kubeconfig is the file that the plugin reads.
	kubeconfig string
	// operatorImage is the image of the brokers that the operator injects now.
	operatorImage atomic.Value
)

func TestMain(m *testing.M) {
	directory, err := os.MkdirTemp("", "plugin")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	kubeconfig = filepath.Join(directory, "config")
	code := apiserver.Run(m, prepare)
	if err := os.RemoveAll(directory); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// prepare writes the kubeconfig, and starts a webhook that answers the API server like the operator.
func prepare(admin *rest.Config) (err error) {
	apiServerConfig = admin
	if apiServer, err = kubernetes.NewForConfig(admin); err != nil {
		return err
	}
	file := clientcmdapi.NewConfig()
	file.Clusters["test"] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData}
	file.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: admin.CertData, ClientKeyData: admin.KeyData}
	file.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test", Namespace: "of-the-context"}
	file.CurrentContext = "test"
	if err := clientcmd.WriteToFile(*file, kubeconfig); err != nil {
		return err
	}
	return startOperator()
}

// injecting answers the API server's requests about pods like the operator.
func injecting() http.Handler {
	decoder := admission.NewDecoder(scheme.Scheme)
	return &admission.Webhook{Handler: admission.HandlerFunc(func(_ context.Context, request admission.Request) admission.Response {
		pod := &corev1.Pod{}
		if err := decoder.Decode(request, pod); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		switch decision, err := injection.Decide(pod, false); {
		case err != nil:
			return admission.Denied(err.Error())
		case !decision.Inject:
			return admission.Allowed("")
		}
		template := defaultTemplate()
		template.Image = operatorImage.Load().(string)
		injected, _, err := injection.Inject(pod, request.Namespace, nil, template)
		if err != nil {
			return admission.Denied(err.Error())
		}
		after, err := json.Marshal(injected)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		return admission.PatchResponseFromRaw(request.Object.Raw, after)
	})}
}

// startOperator starts a webhook that answers the API server like the operator, for namespaces with the label covered=yes.
func startOperator() error {
	operatorImage.Store("broker:1")
	server := httptest.NewTLSServer(injecting())
	none := admissionregistrationv1.SideEffectClassNone
	_, err := apiServer.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(context.Background(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "crypto-broker-operator"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "annotated.inject.cryptobroker.io", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"covered": "yes"}},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}, metav1.CreateOptions{})
	return err
}

// plugin runs the plugin against the API server.
func plugin(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return call(t, "", append(args, "--kubeconfig", kubeconfig)...)
}

// covered makes a namespace for which the API server calls the operator. uncovered makes one for which it does not.
func covered(t *testing.T) string   { return namespace(t, map[string]string{"covered": "yes"}) }
func uncovered(t *testing.T) string { return namespace(t, nil) }

func namespace(t *testing.T, labels map[string]string) string {
	t.Helper()
	ns, err := apiServer.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := apiServer.CoreV1().Pods(ns.Name).DeleteCollection(context.Background(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	return ns.Name
}

// makePod creates a pod. annotation is the value of the annotation that asks for a broker, or empty for no annotation.
func makePod(t *testing.T, namespace, name, annotation string, owner metav1.Object) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}
	if annotation != "" {
		pod.Annotations = map[string]string{contract.InjectAnnotation: annotation}
	}
	if set, ok := owner.(*appsv1.ReplicaSet); ok {
		pod.Labels = set.Spec.Template.Labels
	}
	if owner != nil {
		if err := controllerutil.SetControllerReference(owner, pod, scheme.Scheme); err != nil {
			t.Fatal(err)
		}
	}
	pod, err := apiServer.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// label makes the API server call the operator for a namespace. It waits, because the label takes effect a little later.
func label(t *testing.T, namespace string) {
	t.Helper()
	patch := []byte(`{"metadata":{"labels":{"covered":"yes"}}}`)
	if _, err := apiServer.CoreV1().Namespaces().Patch(t.Context(), namespace, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	admitted(t, namespace, "it has a broker", func(pod *corev1.Pod, err error) bool { return err == nil && injected.Broker(pod) != nil })
}

// makeDeployment creates a Deployment with a ReplicaSet, as the controller would.
func makeDeployment(t *testing.T, namespace, name string, change ...func(*appsv1.Deployment)) *appsv1.ReplicaSet {
	t.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
		}},
	}
	for _, change := range change {
		change(d)
	}
	d, err := apiServer.AppsV1().Deployments(namespace).Create(t.Context(), d, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-1"},
		Spec:       appsv1.ReplicaSetSpec{Selector: d.Spec.Selector, Template: d.Spec.Template},
	}
	if err := controllerutil.SetControllerReference(d, set, scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	if set, err = apiServer.AppsV1().ReplicaSets(namespace).Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return set
}
