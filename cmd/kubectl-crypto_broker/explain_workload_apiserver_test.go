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

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// annotated adds annotations to the template of a Deployment.
func annotated(annotations map[string]string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Annotations = annotations }
}

func TestAWorkloadIsExplainedByWhatBecomesOfANewPod(t *testing.T) {
	asks := map[string]string{contract.InjectAnnotation: "true"}
	ns, left := provided(t, uncovered(t)), uncovered(t)
	early := makeDeployment(t, ns, "early", annotated(asks))
	makePod(t, ns, "early-1-a", "true", early)
	label(t, ns)
	makePod(t, ns, "early-1-b", "true", early)
	makePod(t, ns, "fine-1-a", "true", makeDeployment(t, ns, "fine", annotated(asks)))
	makeDeployment(t, ns, "refused", annotated(map[string]string{contract.InjectAnnotation: "true", contract.MemoryLimitAnnotation: "lots"}))
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
		code      int
		says      []string
	}{
		"deployment/fine": {ns, program.ExitFailed, []string{"deployment/fine in namespace " + ns + ": a new pod of it gets a broker; pod fine-1-a of it has one, which has not started yet.\n", "1 pod, with a broker"}},
		"deploy/early": {ns, program.ExitFailed, []string{
			"deployment/early in namespace " + ns + ": a new pod of it gets a broker; pod early-1-b of it has one, which has not started yet.\n", "2 pods, of which 1 without a broker: early-1-a",
			"Restart it: kubectl crypto-broker restart deployment/early -n " + ns,
		}},
		"deployment.apps/refused": {ns, program.ExitFailed, []string{
			`a new pod of it is refused: admission webhook "annotated.inject.cryptobroker.io" denied the request`, `found "lots"`, "there are none",
			"No pod is created until what the message names is corrected: kubectl edit deployment/refused -n " + ns,
		}},
		"deployment/misplaced": {ns, program.ExitFailed, []string{
			`cryptobroker.io/inject: "true" of the deployment itself has no effect: it belongs to the template`, "a new pod of it gets no broker: the annotation is not on its template.",
		}},
		"deployment/left-out": {left, program.ExitFailed, []string{"a new pod of it gets no broker, though it asks for one.", "The operator does not inject into this namespace"}},
		"cronjob/nightly":     {ns, program.ExitOK, []string{"cronjob/nightly in namespace " + ns + ": a new pod of it gets a broker.\n"}},
	} {
		t.Run(workload, func(t *testing.T) {
			code, stdout, stderr := plugin(t, "explain", workload, "-n", test.namespace)
			if code != test.code {
				t.Errorf("exit code %d, expected %d: %s", code, test.code, stderr)
			}
			for _, says := range test.says {
				if !strings.Contains(stdout, says) {
					t.Errorf("%q is not in\n%s", says, stdout)
				}
			}
		})
	}
	if code, _, stderr := plugin(t, "explain", "service/orders", "-n", ns); code != program.ExitUsage || !strings.Contains(stderr, `found "service/orders", expected the name of a pod, or deployment/NAME`) {
		t.Errorf("exit code %d, found %q", code, stderr)
	}
	if code, _, stderr := plugin(t, "explain", "deployment/none", "-n", ns); code != program.ExitFailed || !strings.Contains(stderr, `"none" not found`) {
		t.Errorf("exit code %d, found %q", code, stderr)
	}
}
