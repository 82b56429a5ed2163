// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
)

// asks returns the annotations of a template that asks for a broker, with further annotations.
func asks(more ...string) func(*appsv1.Deployment) {
	annotations := map[string]string{contract.InjectAnnotation: "true"}
	for i := 0; i < len(more); i += 2 {
		annotations[more[i]] = more[i+1]
	}
	return annotated(annotations)
}

// provided gives a namespace a set of profiles, as the operator does.
func provided(t *testing.T, namespace string) string {
	t.Helper()
	_, err := apiServer.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ProfilesConfigMap},
		Data:       map[string]string{profile.FileName: "- Name: Default\n  API: {HashData: {HashAlg: sha-256}}\n"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return namespace
}

// onNode binds a pod to a node, and reports its broker as waiting, like a kubelet.
func onNode(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	pods := apiServer.CoreV1().Pods(pod.Namespace)
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: "node"}}
	if err := pods.Bind(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod, err := pods.Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{
		Name: contract.BrokerContainer, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}},
	}}
	if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// begun reports the broker of a pod as started, like a kubelet.
func begun(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	pods := apiServer.CoreV1().Pods(pod.Namespace)
	pod, err := pods.Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{
		Name: contract.BrokerContainer, Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
	}}
	if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// kubeletSays creates an event about a pod, like a kubelet.
func kubeletSays(t *testing.T, pod *corev1.Pod, reason, message string) {
	t.Helper()
	_, err := apiServer.CoreV1().Events(pod.Namespace).Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: pod.Name, Namespace: pod.Namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: message, LastTimestamp: metav1.Now(), Source: corev1.EventSource{Component: "kubelet"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// profileIn creates a profile with the condition Accepted as the operator sets it, and
// further conditions.
func profileIn(t *testing.T, namespace, name, reason, message string, further ...metav1.Condition) {
	t.Helper()
	client, path := apiServer.CoreV1().RESTClient(), "/apis/cryptobroker.io/v1alpha1/namespaces/"+namespace+"/cryptoprofiles"
	p := &v1alpha1.CryptoProfile{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "CryptoProfile"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.API.HashData = &v1alpha1.HashData{HashAlg: "sha-256"}
	body, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Post().AbsPath(path).Body(body).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	conditions := append([]metav1.Condition{{
		Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.Now(),
	}}, further...)
	status, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Patch(types.MergePatchType).AbsPath(path, name, "status").Body(status).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
}

// limitRange creates a LimitRange for containers, and waits until it is in effect.
func limitRange(t *testing.T, namespace string, item corev1.LimitRangeItem) {
	t.Helper()
	item.Type = corev1.LimitTypeContainer
	_, err := apiServer.CoreV1().LimitRanges(namespace).Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "limits"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	admitted(t, namespace, "the LimitRange counts", func(_ *corev1.Pod, err error) bool {
		return err != nil && strings.Contains(err.Error(), "usage per Container is")
	})
}

// quota creates an unused ResourceQuota, and waits until it is in effect.
func quota(t *testing.T, namespace string, name corev1.ResourceName, amount string) {
	t.Helper()
	quotas, hard := apiServer.CoreV1().ResourceQuotas(namespace), corev1.ResourceList{name: resource.MustParse(amount)}
	made, err := quotas.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{name: resource.MustParse("0")}}
	if _, err := quotas.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	admitted(t, namespace, "the quota counts", func(_ *corev1.Pod, err error) bool { return err != nil && strings.Contains(err.Error(), "quota: ") })
}

// takes sets the limits of the container of a Deployment.
func takes(memory, cpu string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		limits := corev1.ResourceList{}
		for name, amount := range map[corev1.ResourceName]string{corev1.ResourceMemory: memory, corev1.ResourceCPU: cpu} {
			if amount != "" {
				limits[name] = resource.MustParse(amount)
			}
		}
		d.Spec.Template.Spec.Containers[0].Resources.Limits = limits
	}
}

// operatorAway makes a namespace for which the API server should call an operator that is scaled to zero. The operator has a
// Service as in the chart. It returns the namespace of the operator.
func operatorAway(t *testing.T, namespace string) (operator string) {
	t.Helper()
	operator = uncovered(t)
	labels := map[string]string{"app": "crypto-broker-operator"}
	_, err := apiServer.CoreV1().Services(operator).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "webhook"},
		Spec:       corev1.ServiceSpec{Selector: labels, ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 443}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	makeDeployment(t, operator, "crypto-broker-operator", func(d *appsv1.Deployment) {
		d.Spec.Replicas, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = new(int32(0)), labels, labels
	})
	none, name := admissionregistrationv1.SideEffectClassNone, "away-from-"+namespace
	configurations := apiServer.AdmissionregistrationV1().MutatingWebhookConfigurations()
	configuration, err := configurations.Get(t.Context(), "crypto-broker-operator", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = configurations.Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "annotated.inject.cryptobroker.io", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service:  &admissionregistrationv1.ServiceReference{Namespace: operator, Name: "webhook"},
				CABundle: configuration.Webhooks[0].ClientConfig.CABundle,
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := configurations.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	admitted(t, namespace, "the operator cannot be called", func(_ *corev1.Pod, err error) bool { return err != nil && installation.Uncalled(err.Error()) })
	return operator
}

// editor is a user who may only view and edit one namespace.
func editor(t *testing.T, namespace string) string {
	t.Helper()
	user := viewer(t, namespace)
	_, err := apiServer.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "edit"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:aggregate-to-edit"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	may := func(ctx context.Context) (bool, error) {
		review, err := apiServer.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "create", Resource: "pods"},
		}}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed, err
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, may); err != nil {
		t.Fatalf("%s may not edit: %v", user, err)
	}
	return user
}

// explained runs explain, and expects an exit code and the texts that lead to the fix.
func explained(t *testing.T, namespace, what string, code int, says ...string) string {
	t.Helper()
	found, stdout, stderr := plugin(t, "explain", what, "-n", namespace)
	t.Logf("kubectl crypto-broker explain %s\n%s", what, stdout)
	if found != code {
		t.Errorf("explain %s: exit code %d, expected %d: %s\n%s", what, found, code, stderr, stdout)
	}
	for _, says := range says {
		if !strings.Contains(stdout, says) {
			t.Errorf("explain %s: %q is not in\n%s", what, says, stdout)
		}
	}
	return stdout
}

// follow executes the `kubectl patch` command of an explanation.
func follow(t *testing.T, namespace, explanation string) {
	t.Helper()
	found := regexp.MustCompile(`kubectl patch deployment/(\S+) -n ` + namespace + ` --type merge -p '([^']+)'`).FindStringSubmatch(explanation)
	if found == nil {
		t.Fatalf("there is no command to follow in\n%s", explanation)
	}
	if _, err := apiServer.AppsV1().Deployments(namespace).Patch(t.Context(), found[1], types.MergePatchType, []byte(found[2]), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}
