// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// asks is what a template has that asks for a broker, and more.
func asks(more ...string) func(*appsv1.Deployment) {
	annotations := map[string]string{v1alpha1.InjectAnnotation: "true"}
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

// onNode gives a pod a node, and has the kubelet say of its broker that it waits.
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
		Name: v1alpha1.BrokerContainer, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}},
	}}
	if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// kubeletSays makes an event of a pod as the kubelet does.
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

// profileIn creates a profile with the condition Accepted as the operator sets it.
func profileIn(t *testing.T, namespace, name, reason, message string) {
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
	status, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []metav1.Condition{{
		Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.Now(),
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Patch(types.MergePatchType).AbsPath(path, name, "status").Body(status).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
}

// limitRange makes one for containers, and waits until it counts.
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

// quota makes one of which nothing is used, and waits until it counts.
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

// takes is what the container of a Deployment is limited to.
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

// operatorAway makes a namespace for which an operator should be called that is
// scaled to no replica, with the service that the chart has. It returns where that is.
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
	admitted(t, namespace, "the operator cannot be called", func(_ *corev1.Pod, err error) bool { return err != nil && uncalled.MatchString(err.Error()) })
	return operator
}

// explained runs explain and expects an exit code and what leads to the fix.
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

// follow does what `kubectl patch` does with the command in an explanation.
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

func TestAnOperatorThatDoesNotAnswerIsNamedWithWhatToDo(t *testing.T) {
	ns := provided(t, uncovered(t))
	makePod(t, ns, "orders-1-a", "true", makeDeployment(t, ns, "orders", asks()))
	makePod(t, ns, "alone", "true", nil)
	operator := operatorAway(t, ns)
	fix := []string{
		"deployment/crypto-broker-operator in namespace " + operator + ": 0 of 0 replicas are available",
		"The operator is scaled to no replica. Scale it: kubectl scale deployment/crypto-broker-operator -n " + operator + " --replicas=2\n",
	}
	explained(t, ns, "deployment/orders", exitFailed, append(fix, "a new pod of it is refused: ", "failed calling webhook")...)
	explained(t, ns, "orders-1-a", exitFailed, append(fix, "has no broker, though it should have one.", "A restart would not bring it now: a new pod of deployment/orders is refused")...)
	explained(t, ns, "alone", exitFailed, fix...)
}

func TestAnAnnotationThatIsNotOnTheTemplateIsFoundFromTheWorkloadAndFromItsPod(t *testing.T) {
	ns := provided(t, covered(t))
	misplaced := map[string]string{v1alpha1.InjectAnnotation: "true", v1alpha1.AllowedProfilesAnnotation: "Bob's"}
	makePod(t, ns, "orders-1-a", "", makeDeployment(t, ns, "orders", func(d *appsv1.Deployment) { d.Annotations = misplaced }))
	fix := []string{
		`cryptobroker.io/inject: "true" of the deployment itself has no effect: it belongs to the template`,
		"Put the annotation on the template, which makes new pods:\n  kubectl patch deployment/orders -n " + ns + " --type merge -p ",
	}
	explained(t, ns, "deployment/orders", exitFailed, append(fix, "a new pod of it gets no broker: the annotation is not on its template.")...)
	explained(t, ns, "orders-1-a", exitFailed, append(fix, "has no broker, since deployment/orders asks for one and its template does not.")...)

	set := makeDeployment(t, ns, "plain", func(d *appsv1.Deployment) { d.Annotations = map[string]string{v1alpha1.InjectAnnotation: "true"} })
	makePod(t, ns, "plain-1-a", "", set)
	follow(t, ns, explained(t, ns, "plain-1-a", exitFailed))
	explained(t, ns, "plain-1-a", exitFailed, "has no broker, and the template of deployment/plain asks for one by now.", "kubectl crypto-broker restart deployment/plain -n "+ns)
	explained(t, ns, "deployment/plain", exitFailed, "a new pod of it gets a broker.", "1 pod, of which 1 without a broker: plain-1-a")

	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
	nightly, err := apiServer.BatchV1().CronJobs(ns).Create(t.Context(), &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: ns, Annotations: misplaced},
		Spec:       batchv1.CronJobSpec{Schedule: "0 3 * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "nightly-1", Namespace: ns}, Spec: nightly.Spec.JobTemplate.Spec}
	if err := controllerutil.SetControllerReference(nightly, job, scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	if job, err = apiServer.BatchV1().Jobs(ns).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	makePod(t, ns, "nightly-1-a", "", job)
	explained(t, ns, "nightly-1-a", exitFailed, `kubectl patch cronjob/nightly -n `+ns+` --type merge -p '{"spec":{"jobTemplate":{"spec":{"template":{"metadata":{"annotations":{`)
}

func TestASecretOfTheAnnotationKeysThatIsNotThereIsNamed(t *testing.T) {
	ns := provided(t, covered(t))
	set := makeDeployment(t, ns, "orders", asks(v1alpha1.KeysAnnotation, "issuing-ca, broker-keys"))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "orders-1-a", Labels: set.Spec.Template.Labels, Annotations: set.Spec.Template.Annotations}, Spec: set.Spec.Template.Spec}
	if err := controllerutil.SetControllerReference(set, pod, scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	pod, err := apiServer.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	onNode(t, pod)
	kubeletSays(t, pod, "FailedMount", `MountVolume.SetUp failed for volume "crypto-broker-keys-2" : secret "broker-keys" not found`)
	fix := []string{
		`broker       has not started: MountVolume.SetUp failed for volume "crypto-broker-keys-2" : secret "broker-keys" not found`,
		"The annotation cryptobroker.io/keys names the Secret broker-keys, which is not there.", "kubectl create secret generic broker-keys -n " + ns,
	}
	explained(t, ns, "orders-1-a", exitFailed, fix...)
	explained(t, ns, "deployment/orders", exitFailed, fix...)
}

func TestANamespaceWithoutAProfileIsToldWithWhatToDo(t *testing.T) {
	ns := covered(t)
	makeDeployment(t, ns, "new", asks())
	onNode(t, makePod(t, ns, "orders-1-a", "true", makeDeployment(t, ns, "orders", asks())))
	for _, what := range []string{"orders-1-a", "deployment/orders", "deployment/new"} {
		explained(t, ns, what, exitFailed, "namespace "+ns+" has no CryptoProfile, and no ClusterCryptoProfile selects it", "Apply a profile, and the pod goes on by itself: kubectl apply -n "+ns+" -f PROFILE.yaml\n")
	}
	profileIn(t, ns, "short", v1alpha1.ReasonBelowMinimumStrength, "The profile has 112 bits, expected 128 at least.")
	for _, what := range []string{"orders-1-a", "deployment/orders", "deployment/new"} {
		explained(t, ns, what, exitFailed, "cprof/short is not accepted (BelowMinimumStrength): The profile has 112 bits", "Correct a profile, and the pod goes on by itself: kubectl edit cprof/short -n "+ns)
	}
}

func TestALimitOfTheNamespaceIsToldWithTheBrokersMemoryAndTheAnnotationThatChangesIt(t *testing.T) {
	small := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	large := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}
	tests := map[string]struct {
		limit func(t *testing.T, namespace string)
		app   func(*appsv1.Deployment)
		says  []string
		// followed is whether there is a command, which leads out.
		followed bool
	}{
		"a LimitRange whose maximum the broker's limit is above": {
			func(t *testing.T, ns string) { limitRange(t, ns, corev1.LimitRangeItem{Max: small}) }, takes("64Mi", ""),
			[]string{"the container crypto-broker is what does not fit", "takes a limit of 128Mi of memory", "cryptobroker.io/memory-limit of the template", `"cryptobroker.io/memory-limit":"64Mi"`}, true,
		},
		"a LimitRange whose minimum the broker's request is below": {
			func(t *testing.T, ns string) { limitRange(t, ns, corev1.LimitRangeItem{Min: large}) }, takes("256Mi", ""),
			[]string{"takes a request of 32Mi of memory", `"cryptobroker.io/memory-request":"256Mi"`}, true,
		},
		"a quota that app and broker together are above": {
			func(t *testing.T, ns string) { quota(t, ns, corev1.ResourceLimitsMemory, "100Mi") }, takes("60Mi", ""),
			[]string{"takes 128Mi of the 188Mi that the pod asks for as limits.memory (cryptobroker.io/memory-limit)", "cryptobroker.io/memory-request and cryptobroker.io/memory-limit of the template", "kubectl describe limitranges,resourcequotas -n "}, false,
		},
		"a quota that the app alone is above": {
			func(t *testing.T, ns string) { quota(t, ns, corev1.ResourceLimitsMemory, "100Mi") }, takes("200Mi", ""),
			[]string{"the pod does not fit without it, either", "too little for the pod even without a broker", "kubectl describe limitranges,resourcequotas -n "}, false,
		},
		"a quota that demands a limit which the broker has not": {
			func(t *testing.T, ns string) { quota(t, ns, corev1.ResourceLimitsCPU, "4") }, takes("", "1"),
			[]string{"A quota of the namespace demands limits.cpu of each container. The annotation cryptobroker.io/cpu-limit of the template gives the broker one"}, true,
		},
		"a quota that demands a limit which the app has not, either": {
			func(t *testing.T, ns string) { quota(t, ns, corev1.ResourceLimitsCPU, "4") }, nil,
			[]string{"The annotation cryptobroker.io/cpu-limit of the template gives the broker one", "The template has to say it for app, too."}, false,
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			ns := provided(t, uncovered(t))
			changes := []func(*appsv1.Deployment){asks()}
			if test.app != nil {
				changes = append(changes, test.app)
			}
			set := makeDeployment(t, ns, "orders", changes...)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "orders-1-a", Labels: set.Spec.Template.Labels, Annotations: set.Spec.Template.Annotations}, Spec: set.Spec.Template.Spec}
			if err := controllerutil.SetControllerReference(set, pod, scheme.Scheme); err != nil {
				t.Fatal(err)
			}
			if _, err := apiServer.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			label(t, ns)
			test.limit(t, ns)
			explained(t, ns, "orders-1-a", exitFailed, append(test.says, "A restart would not bring it now: ")...)
			explanation := explained(t, ns, "deployment/orders", exitFailed, test.says...)
			if test.followed {
				follow(t, ns, explanation)
				explained(t, ns, "deployment/orders", exitFailed, "a new pod of it gets a broker.", fmt.Sprintf("Restart it: kubectl crypto-broker restart deployment/orders -n %s", ns))
			}
		})
	}
}

func TestWhatIsAsItShouldBeIsExplainedWithoutAnError(t *testing.T) {
	ns := provided(t, covered(t))
	makeDeployment(t, ns, "orders", asks())
	makeDeployment(t, ns, "plain")
	makePod(t, ns, "declined", "false", nil)
	explained(t, ns, "deployment/orders", exitOK, "a new pod of it gets a broker.\n")
	explained(t, ns, "deployment/plain", exitOK, "gets no broker, as it should: not asked.")
	explained(t, ns, "declined", exitOK, "has no broker, as it should.")
}
