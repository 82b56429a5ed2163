// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// annotated gives the template of a Deployment annotations.
func annotated(annotations map[string]string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Annotations = annotations }
}

func TestAWorkloadIsExplainedByWhatBecomesOfANewPod(t *testing.T) {
	asks := map[string]string{v1alpha1.InjectAnnotation: "true"}
	ns, left := uncovered(t), uncovered(t)
	early := makeDeployment(t, ns, "early", annotated(asks))
	makePod(t, ns, "early-1-a", "true", early)
	label(t, ns)
	makePod(t, ns, "early-1-b", "true", early)
	makePod(t, ns, "fine-1-a", "true", makeDeployment(t, ns, "fine", annotated(asks)))
	makeDeployment(t, ns, "refused", annotated(map[string]string{v1alpha1.InjectAnnotation: "true", v1alpha1.MemoryLimitAnnotation: "lots"}))
	makeDeployment(t, ns, "misplaced", func(d *appsv1.Deployment) { d.Annotations = asks })
	makeDeployment(t, left, "left-out", annotated(asks))
	nightly := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "nightly"}, Spec: batchv1.CronJobSpec{Schedule: "0 3 * * *"}}
	template := &nightly.Spec.JobTemplate.Spec.Template
	template.Annotations = asks
	template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "app", Image: "app"}}}
	if _, err := apiServer.BatchV1().CronJobs(ns).Create(t.Context(), nightly, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	for workload, test := range map[string]struct {
		namespace string
		says      []string
	}{
		"deployment/fine": {ns, []string{"deployment/fine in namespace " + ns + ": a new pod of it gets a broker.\n", "1 pod, with a broker"}},
		"deploy/early": {ns, []string{
			"deployment/early in namespace " + ns + ": a new pod of it gets a broker.\n", "2 pods, of which 1 without a broker: early-1-a",
			"Restart it: kubectl crypto-broker restart deployment/early -n " + ns,
		}},
		"deployment.apps/refused": {ns, []string{
			`a new pod of it is refused: admission webhook "annotated.inject.cryptobroker.io" denied the request`, `found "lots"`, "there are none",
			"None is created until the template, or what refuses it, is corrected.",
		}},
		"deployment/misplaced": {ns, []string{
			`cryptobroker.io/inject: "true" of the deployment itself has no effect: it belongs to the template`, "a new pod of it gets no broker, as it should: not asked.",
			"To get one, it needs the annotation",
		}},
		"deployment/left-out": {left, []string{"a new pod of it gets no broker, though it asks for one.", "The operator does not inject into this namespace"}},
		"cronjob/nightly":     {ns, []string{"cronjob/nightly in namespace " + ns + ": a new pod of it gets a broker.\n"}},
	} {
		t.Run(workload, func(t *testing.T) {
			code, stdout, stderr := plugin(t, "explain", workload, "-n", test.namespace)
			if code != exitOK {
				t.Errorf("exit code %d: %s", code, stderr)
			}
			for _, says := range test.says {
				if !strings.Contains(stdout, says) {
					t.Errorf("%q is not in\n%s", says, stdout)
				}
			}
		})
	}
	if code, _, stderr := plugin(t, "explain", "service/orders", "-n", ns); code != exitUsage || !strings.Contains(stderr, `found "service/orders", expected the name of a pod, or deployment/NAME`) {
		t.Errorf("exit code %d, found %q", code, stderr)
	}
	if code, _, stderr := plugin(t, "explain", "deployment/none", "-n", ns); code != exitFailed || !strings.Contains(stderr, `"none" not found`) {
		t.Errorf("exit code %d, found %q", code, stderr)
	}
}
