// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

func TestAnOperatorThatDoesNotAnswerIsNamedWithWhatToDo(t *testing.T) {
	ns := provided(t, uncovered(t))
	makePod(t, ns, "orders-1-a", "true", makeDeployment(t, ns, "orders", asks()))
	makePod(t, ns, "alone", "true", nil)
	operator := operatorAway(t, ns)
	fix := []string{
		"deployment/crypto-broker-operator in namespace " + operator + ": 0 of 0 replicas are available",
		"The operator is scaled to no replica. Scale it: kubectl scale deployment/crypto-broker-operator -n " + operator + " --replicas=2\n",
	}
	explained(t, ns, "deployment/orders", program.ExitFailed, append(fix, "a new pod of it is refused: ", "failed calling webhook")...)
	explained(t, ns, "orders-1-a", program.ExitFailed, append(fix, "has no broker, though it should have one.", "A restart would not bring a broker now: a new pod of deployment/orders is refused")...)
	explained(t, ns, "alone", program.ExitFailed, fix...)

	// Users who may not read webhooks, or the operator, learn where to look.
	user := editor(t, ns)
	code, stdout, stderr := plugin(t, "explain", "deployment/orders", "-n", ns, "--as", user)
	if want := "The operator does not answer the API server. Look at it, or ask somebody who may look at it: kubectl get deployments,pods -n " + operator + "\n"; code != program.ExitFailed || !strings.Contains(stdout, want) {
		t.Errorf("exit code %d, %q is not in\n%s%s", code, want, stdout, stderr)
	}
}

func TestAnAnnotationThatIsNotOnTheTemplateIsFoundFromTheWorkloadAndFromItsPod(t *testing.T) {
	ns := provided(t, covered(t))
	misplaced := map[string]string{contract.InjectAnnotation: "true", contract.AllowedProfilesAnnotation: "Bob's"}
	makePod(t, ns, "orders-1-a", "", makeDeployment(t, ns, "orders", func(d *appsv1.Deployment) { d.Annotations = misplaced }))
	fix := []string{
		`cryptobroker.io/inject: "true" of the deployment itself has no effect: it belongs to the template`,
		"Put the annotation on the template, which makes new pods:\n  kubectl patch deployment/orders -n " + ns + " --type merge -p ",
	}
	explained(t, ns, "deployment/orders", program.ExitFailed, append(fix, "a new pod of it gets no broker: the annotation is not on its template.")...)
	explained(t, ns, "orders-1-a", program.ExitFailed, append(fix, "has no broker: deployment/orders itself asks for one, but its template does not.")...)

	set := makeDeployment(t, ns, "plain", func(d *appsv1.Deployment) { d.Annotations = map[string]string{contract.InjectAnnotation: "true"} })
	makePod(t, ns, "plain-1-a", "", set)
	follow(t, ns, explained(t, ns, "plain-1-a", program.ExitFailed))
	explained(t, ns, "plain-1-a", program.ExitFailed, "has no broker, and the template of deployment/plain asks for one by now.", "kubectl crypto-broker restart deployment/plain -n "+ns)
	if said := explained(t, ns, "deployment/plain", program.ExitFailed, "a new pod of it gets a broker.", "1 pod, of which 1 without a broker: plain-1-a"); strings.Contains(said, "has no effect") {
		t.Errorf("what the template says too is still told of:\n%s", said)
	}

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
	explained(t, ns, "nightly-1-a", program.ExitFailed, `kubectl patch cronjob/nightly -n `+ns+` --type merge -p '{"spec":{"jobTemplate":{"spec":{"template":{"metadata":{"annotations":{`)
}

func TestASecretOfTheAnnotationKeysThatIsNotThereIsNamed(t *testing.T) {
	ns := provided(t, covered(t))
	set := makeDeployment(t, ns, "orders", asks(contract.KeysAnnotation, "issuing-ca, broker-keys"))
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
	explained(t, ns, "orders-1-a", program.ExitFailed, fix...)
	explained(t, ns, "deployment/orders", program.ExitFailed, fix...)
}

func TestANamespaceWithoutAProfileIsToldWithWhatToDo(t *testing.T) {
	ns := covered(t)
	makeDeployment(t, ns, "new", asks())
	onNode(t, makePod(t, ns, "orders-1-a", "true", makeDeployment(t, ns, "orders", asks())))
	for _, what := range []string{"orders-1-a", "deployment/orders", "deployment/new"} {
		explained(t, ns, what, program.ExitFailed, "namespace "+ns+" has no CryptoProfile, and no ClusterCryptoProfile selects it", "Apply a profile, and the pod continues: kubectl apply -n "+ns+" -f PROFILE.yaml\n")
	}
	profileIn(t, ns, "short", v1alpha1.ReasonBelowMinimumStrength, "The profile has 112 bits, expected 128 at least.")
	for _, what := range []string{"orders-1-a", "deployment/orders", "deployment/new"} {
		explained(t, ns, what, program.ExitFailed, "cprof/short is not accepted (BelowMinimumStrength): The profile has 112 bits", "Correct a profile, and the pod continues: kubectl edit cprof/short -n "+ns)
	}
}

func TestAMissingBaselineIsToldWithTheCommandsThatAllowTheProfiles(t *testing.T) {
	ns := covered(t)
	makeDeployment(t, ns, "new", asks())
	onNode(t, makePod(t, ns, "orders-1-a", "true", makeDeployment(t, ns, "orders", asks())))
	running := makePod(t, ns, "running", "true", nil)
	onNode(t, running)
	begun(t, running)
	_, err := apiServer.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ProfilesConfigMap, Annotations: downgrade.State{}.Lost().Annotations()},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	says := []string{
		"the operator does not know what namespace " + ns + " served before (BaselineMissing)",
		`Look at each of these profiles. Where it is what the namespace should serve, somebody with the verb "weaken" on it runs:` + "\n",
	}
	for _, name := range []string{"orders", "payments"} {
		change := downgrade.Change{
			Source:  downgrade.Source{Kind: downgrade.KindNamespaced, Namespace: ns, Name: name},
			Profile: name, Weakenings: []downgrade.Weakening{{Sentence: "it is not known"}}, Digest: "sha256:" + name, Unknown: true,
		}
		profileIn(t, ns, name, v1alpha1.ReasonDowngradeWithheld, change.Withheld(), metav1.Condition{
			Type: v1alpha1.ConditionDowngradeWithheld, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonWeaker, Message: change.Withheld(), LastTransitionTime: metav1.Now(),
		})
		says = append(says, "\n  "+downgrade.Command(change)+"\n")
	}
	for _, what := range []string{"orders-1-a", "deployment/orders", "deployment/new", "running"} {
		explained(t, ns, what, program.ExitFailed, says...)
	}
}

func TestALimitOfTheNamespaceIsToldWithTheBrokersMemoryAndTheAnnotationThatChangesIt(t *testing.T) {
	small := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	large := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}
	tests := map[string]struct {
		limit func(t *testing.T, namespace string)
		app   func(*appsv1.Deployment)
		says  []string
		// followed reports whether there is a command that solves the problem.
		followed bool
	}{
		"a LimitRange whose maximum the broker's limit is above": {
			func(t *testing.T, ns string) { limitRange(t, ns, corev1.LimitRangeItem{Max: small}) }, takes("64Mi", ""),
			[]string{"the container crypto-broker does not fit", "takes a limit of 128Mi of memory", "cryptobroker.io/memory-limit of the template", `"cryptobroker.io/memory-limit":"64Mi"`}, true,
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
			[]string{"the pod does not fit without it, either", "are too low for the pod even without a broker", "kubectl describe limitranges,resourcequotas -n "}, false,
		},
		"a quota that demands a limit which the broker has not": {
			func(t *testing.T, ns string) { quota(t, ns, corev1.ResourceLimitsCPU, "4") }, takes("", "1"),
			[]string{"A quota of the namespace demands limits.cpu of each container. The annotation cryptobroker.io/cpu-limit of the template gives the broker one"}, true,
		},
		"a quota that demands a limit which the app has not, either": {
			func(t *testing.T, ns string) { quota(t, ns, corev1.ResourceLimitsCPU, "4") }, nil,
			[]string{"The annotation cryptobroker.io/cpu-limit of the template gives the broker one", "The template has to set it for app, too."}, false,
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
			explained(t, ns, "orders-1-a", program.ExitFailed, append(test.says, "A restart would not bring a broker now: ")...)
			explanation := explained(t, ns, "deployment/orders", program.ExitFailed, test.says...)
			if test.followed {
				follow(t, ns, explanation)
				explained(t, ns, "deployment/orders", program.ExitFailed, "a new pod of it gets a broker.", fmt.Sprintf("Restart it: kubectl crypto-broker restart deployment/orders -n %s", ns))
			}
		})
	}
}

func TestWhatIsAsItShouldBeIsExplainedWithoutAnError(t *testing.T) {
	ns := provided(t, covered(t))
	makeDeployment(t, ns, "orders", asks())
	makeDeployment(t, ns, "plain")
	makePod(t, ns, "declined", "false", nil)
	explained(t, ns, "deployment/orders", program.ExitOK, "a new pod of it gets a broker.\n")
	explained(t, ns, "deployment/plain", program.ExitOK, "gets no broker, as it should: not asked.")
	explained(t, ns, "declined", program.ExitOK, "has no broker, as it should.")
}
