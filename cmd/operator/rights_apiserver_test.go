// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// chartValues are those with which the chart gives the operator all its rights.
var chartValues = []string{"catalogue.enabled=true", "catalogue.profiles={ksa-moderate-2020}", "catalogue.namespaces=test=other", "metrics.secure=true", "keyGateway.enabled=true"}

// unusedRights are those that this test can't see the operator use, with the reason.
var unusedRights = map[string]string{
	"create clustercryptoprofiles of cryptobroker.io named ksa-moderate-2020":            appliesNew,
	"create injectiontemplates of cryptobroker.io named crypto-broker-operator":          appliesNew,
	"patch events of events.k8s.io":                                                      repeats,
	"patch events in crypto-broker-system":                                               repeats,
	"update configmaps named crypto-broker-operator-key-gateway in crypto-broker-system": rotates,
	"update secrets named crypto-broker-operator-key-gateway-ca in crypto-broker-system": rotates,
	"update secrets named crypto-broker-operator-ca in crypto-broker-system":             rotates,
	"update secrets named crypto-broker-operator-signing in crypto-broker-system":        rotates,
}

const (
	appliesNew = "an apply that creates an object is a patch in the audit log, and needs both rights"
	repeats    = "an event that repeats within minutes is a patch"
	rotates    = "keys are replaced after weeks, or by kubectl crypto-broker rotate-key"
)

// The operator uses every right that the chart gives it, and asks the API server for nothing else.
func TestTheOperatorUsesEachOfItsRightsAndNoOther(t *testing.T) {
	admin, log := apiserver.StartAuditedFor(t)
	useCluster(t, admin)
	kubernetes := clientOf(t, admin)
	create(t, kubernetes, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}})
	files := []string{"rbac/role", "rbac/binding", "rbac/catalogue", "rbac/injection-template", "rbac/metrics", "key-gateway/rbac"}
	rights := apiserver.GrantByChart(t, admin, files, chartValues...)[environment.OperatorUser]
	installed := installByChart(t, admin, kubernetes)

	operator := startInstalled(t, installed)
	useRights(t, kubernetes, operator)
	operator.stop(t)
	operator = startInstalled(t, installed) // which finds what the first one has left
	operator.awaitReady(t)
	operator.stop(t)

	apiserver.ExpectUse(t, log, environment.OperatorUser, rights, unusedRights)
}

// installed is an operator that is installed and does not run.
type installed struct {
	kubeconfig, health, webhooks, metrics string
	arguments                             []string
}

// installByChart writes the credentials of the operator's account, and the objects that the operator finds. Its
// webhooks answer the test and not the API server, which reaches no Service here.
func installByChart(t *testing.T, admin *rest.Config, kubernetes client.Client) (i installed) {
	t.Helper()
	none := &metav1.LabelSelector{MatchLabels: map[string]string{"none": "none"}}
	effects, service := admissionregistrationv1.SideEffectClassNone, &admissionregistrationv1.ServiceReference{Namespace: operatorNamespace, Name: "crypto-broker-operator-webhook"}
	called := admissionregistrationv1.WebhookClientConfig{Service: service}
	create(t, kubernetes,
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: environment.Release}, Webhooks: []admissionregistrationv1.MutatingWebhook{
			{Name: "a.cryptobroker.io", ClientConfig: called, NamespaceSelector: none, SideEffects: &effects, AdmissionReviewVersions: []string{"v1"}},
		}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: environment.Release}, Webhooks: []admissionregistrationv1.ValidatingWebhook{
			{Name: "a.cryptobroker.io", ClientConfig: called, NamespaceSelector: none, SideEffects: &effects, AdmissionReviewVersions: []string{"v1"}},
		}})

	i.kubeconfig = writeKubeconfig(t, &rest.Config{Host: admin.Host, BearerToken: tokenOf(t, kubernetes, environment.Release), TLSClientConfig: rest.TLSClientConfig{CAData: admin.CAData}})

	objects, err := apiserver.FromChart(t.Context(), admin, "templates/manager/deployment.yaml", chartValues...)
	if err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, &deployment); err != nil {
		t.Fatal(err)
	}
	i.metrics, _ = reserve(t)
	i.health, _ = reserve(t)
	var port string
	i.webhooks, port = reserve(t)
	i.arguments = slices.Concat(deployment.Spec.Template.Spec.Containers[0].Args, []string{
		"--namespace=" + operatorNamespace, "--metrics-bind-address=" + i.metrics, "--health-probe-bind-address=" + i.health, "--webhook-port=" + port,
	})
	return i
}

// running is a process of the operator.
type running struct {
	installed
	command *exec.Cmd
}

func startInstalled(t *testing.T, i installed) *running {
	t.Helper()
	var log logBuffer
	operator := exec.CommandContext(t.Context(), os.Args[0])
	operator.Env = append(os.Environ(), argumentsVariable+"="+strings.Join(i.arguments, " "), "KUBECONFIG="+i.kubeconfig)
	operator.Stderr = &log
	if err := operator.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = operator.Wait() // where the test has not stopped the process, its end has killed it
		if t.Failed() {
			t.Logf("the log of an operator:\n%s", &log)
		}
	})
	return &running{i, operator}
}

func (r *running) awaitReady(t *testing.T) {
	t.Helper()
	eventually(t, "the operator is ready", func() error {
		code, body, err := answer("http://" + r.health + "/readyz")
		if err != nil || code != http.StatusOK {
			return fmt.Errorf("/readyz has the code %d, %q: %w", code, body, err)
		}
		return nil
	})
}

func (r *running) stop(t *testing.T) {
	t.Helper()
	if err := errors.Join(r.command.Process.Signal(syscall.SIGTERM), r.command.Wait()); err != nil {
		t.Errorf("the operator ended with %v, expected no error", err)
	}
}

// insecure calls the operator's ports. Other tests check the certificates.
var insecure = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}

// review asks a webhook of the operator about an object, as the API server does. What it answers is for other tests.
func (r *running) review(t *testing.T, path string, operation admissionv1.Operation, kind string, object client.Object) {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	request := &admissionv1.AdmissionRequest{
		UID: "1", Operation: operation, Kind: metav1.GroupVersionKind{Version: "v1", Kind: kind}, Namespace: object.GetNamespace(), Name: object.GetName(),
		Object: runtime.RawExtension{Raw: raw}, UserInfo: authenticationv1.UserInfo{Username: "somebody"},
	}
	body, err := json.Marshal(&admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request})
	if err != nil {
		t.Fatal(err)
	}
	response, err := insecure.Post("https://"+r.webhooks+path, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	review := &admissionv1.AdmissionReview{}
	if err := json.NewDecoder(response.Body).Decode(review); err != nil || review.Response == nil {
		t.Fatalf("%s answered with %d: %v", path, response.StatusCode, err)
	}
}

// useRights has everything happen for which the operator has a right.
func useRights(t *testing.T, kubernetes client.Client, operator *running) {
	t.Helper()
	operator.awaitReady(t)
	get := func(object client.Object, namespace, name string) error {
		return kubernetes.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
	}

	// A set of profiles, which changes while a pod has it.
	create(t, kubernetes, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"test": "shop"}}})
	profile := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
	profile.Spec.API.HashData = &v1alpha1.HashData{HashAlg: "sha3-512"}
	create(t, kubernetes, profile)
	eventually(t, "the namespace has a set", func() error { return get(&corev1.ConfigMap{}, "shop", v1alpha1.ProfilesConfigMap) })
	pod := podOf("shop", "served", nil)
	pod.Spec.InitContainers = []corev1.Container{{Name: contract.BrokerContainer, Image: "broker:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
	create(t, kubernetes, pod)
	waiting := pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: contract.BrokerContainer, Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}
	if err := kubernetes.Status().Patch(t.Context(), pod, client.MergeFrom(waiting)); err != nil {
		t.Fatal(err)
	}
	before := profile.DeepCopy()
	profile.Spec.API.HashData.HashAlg = "sha-512"
	if err := kubernetes.Patch(t.Context(), profile, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod is told of a new set", func() error {
		if err := get(pod, "shop", pod.Name); err != nil {
			return err
		}
		if pod.Annotations[contract.ProfilesDigestAnnotation] == "" {
			return errors.New("no annotation")
		}
		return nil
	})

	// Pods without the broker that they ask for, whose owners belong to others.
	replicas := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	replicas.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	replicas.Spec.Template.Labels, replicas.Spec.Template.Spec = replicas.Spec.Selector.MatchLabels, podOf("", "", nil).Spec
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly"}}
	job.Spec.Template.Spec = podOf("", "", nil).Spec
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	create(t, kubernetes, replicas, job)
	create(t, kubernetes,
		podOf("shop", "web-1", metav1.NewControllerRef(replicas, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))),
		podOf("shop", "nightly-1", metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))))
	for _, owner := range []string{"ReplicaSet", "Job"} {
		eventually(t, "there is an event about a missing broker of a "+owner, func() error {
			var events eventsv1.EventList
			if err := kubernetes.List(t.Context(), &events, client.InNamespace("shop")); err != nil {
				return err
			}
			if !slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool { return e.Regarding.Kind == owner }) {
				return errors.New("no event")
			}
			return nil
		})
	}

	// Webhooks read what their cache does not have yet, and ask who may make a profile weaker.
	quiet := podOf("new", "app", nil)
	quiet.Annotations = nil
	operator.review(t, "/mutate--v1-pod", admissionv1.Create, "Pod", quiet)
	create(t, kubernetes, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "quiet"}})
	operator.review(t, "/mutate--v1-pod", admissionv1.Create, "Pod", podOf("quiet", "app", nil))
	weaker := profile.DeepCopy()
	weaker.Annotations = map[string]string{v1alpha1.AllowWeakerAnnotation: "sha256:00"}
	operator.review(t, "/validate-cryptobroker-io-v1alpha1-cryptoprofile", admissionv1.Create, "CryptoProfile", weaker)
	using := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "payments"}}
	using.Spec.API.EncryptData = &v1alpha1.EncryptData{EncryptAlg: "aes-gcm", KeySize: 256, NonceStrategy: "random", KeyIDs: []v1alpha1.KeyID{{ID: "kms/orders"}}}
	operator.review(t, "/validate-cryptobroker-io-v1alpha1-cryptoprofile", admissionv1.Create, "CryptoProfile", using)
	provider := &v1alpha1.KeyProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "kms"}, Spec: v1alpha1.KeyProviderSpec{
		Type: "openbao", Endpoints: []v1alpha1.KeyEndpoint{"https://bao.example"}, AllowedProfiles: []v1alpha1.AllowedProfileName{"payments"},
		Credentials: &v1alpha1.KeyProviderCredentials{SecretRef: v1alpha1.SecretReference{Name: "kms"}},
	}}
	ofCluster := &v1alpha1.ClusterKeyProvider{ObjectMeta: metav1.ObjectMeta{Name: "kms"}, Spec: v1alpha1.ClusterKeyProviderSpec{KeyProviderSpec: provider.Spec}}
	operator.review(t, "/validate-cryptobroker-io-v1alpha1-keyprovider", admissionv1.Create, "KeyProvider", provider)
	operator.review(t, "/validate-cryptobroker-io-v1alpha1-clusterkeyprovider", admissionv1.Create, "ClusterKeyProvider", ofCluster)

	// Key providers and key access get a status.
	policy := &v1alpha1.KeyAccessPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "policy"}, Spec: v1alpha1.KeyAccessPolicySpec{
		Allow: []v1alpha1.KeyAccessRule{{Name: "one", When: "caller.bound"}},
	}}
	peer := &v1alpha1.KeyAccessPeer{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "peer"}, Spec: v1alpha1.KeyAccessPeerSpec{
		URL: "https://b.example", Issuers: []v1alpha1.KeyAccessIssuer{{URL: "https://idp.example", Audiences: []v1alpha1.KeyAccessAudience{"b"}}},
	}}
	create(t, kubernetes, provider, ofCluster, policy, peer)
	for _, object := range []client.Object{provider, ofCluster, policy, peer} {
		eventually(t, fmt.Sprintf("%T has a status", object), func() error {
			if err := get(object, object.GetNamespace(), object.GetName()); err != nil {
				return err
			}
			if !slices.ContainsFunc(object.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Subresource == "status" }) {
				return errors.New("no status")
			}
			return nil
		})
	}

	// Somebody reads the metrics with a token.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+operator.metrics+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+tokenOf(t, kubernetes, "prometheus"))
	response, err := insecure.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusForbidden {
		t.Errorf("metrics answer with %d, expected %d for an account without the right: %v", response.StatusCode, http.StatusForbidden, err)
	}

	// A profile ends.
	if err := kubernetes.Delete(t.Context(), profile); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the set is empty", func() error {
		set := &corev1.ConfigMap{}
		if err := get(set, "shop", v1alpha1.ProfilesConfigMap); err != nil {
			return err
		}
		if strings.Contains(set.Data["Profiles.yaml"], "orders") {
			return errors.New("the set still has the profile")
		}
		return nil
	})

	// A set that nobody needs is deleted.
	needless := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "quiet", Name: v1alpha1.ProfilesConfigMap}}
	create(t, kubernetes, needless)
	eventually(t, "the needless set is gone", func() error {
		err := get(needless, needless.Namespace, needless.Name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("found the set"), err)
	})
}

// podOf is a pod of an owner, which may be nil.
func podOf(namespace, name string, owner *metav1.OwnerReference) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	pod.Annotations = map[string]string{contract.InjectAnnotation: "true"}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "example.com/app:1"}}
	if owner != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return pod
}
