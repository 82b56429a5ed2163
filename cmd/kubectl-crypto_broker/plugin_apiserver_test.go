// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/manifest"
)

// listed runs a command that lists pods and returns name, broker and set of each.
func listed(t *testing.T, args ...string) (found []string, stderr string) {
	t.Helper()
	code, stdout, stderr := plugin(t, append(args, "-o", "json")...)
	if code != program.ExitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var answer struct{ Pods []brokers.Row }
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	for _, r := range answer.Pods {
		found = append(found, strings.TrimSpace(strings.Join([]string{r.Pod, r.Broker, r.Set, r.Workload}, " ")))
	}
	return found, stderr
}

func expect(t *testing.T, found []string, want ...string) {
	t.Helper()
	if !slices.Equal(found, want) {
		t.Errorf("found\n%q, expected\n%q", found, want)
	}
}

func TestPodsAreListedByWhatTheirBrokerIs(t *testing.T) {
	ns := uncovered(t)
	set := makeDeployment(t, ns, "orders")
	makePod(t, ns, "a-missed", "true", set)
	makePod(t, ns, "b-declined", "false", nil)
	label(t, ns)
	operatorImage.Store("broker:0")
	makePod(t, ns, "c-old", "true", set)
	operatorImage.Store("broker:1")
	makePod(t, ns, "d-new", "true", nil)

	found, _ := listed(t, "pods", "-n", ns)
	expect(t, found, "a-missed missing  deployment/orders", "c-old outdated starting deployment/orders", "d-new current starting")
	found, _ = listed(t, "pods", "--all", "-n", ns)
	expect(t, found, "a-missed missing  deployment/orders", "b-declined none", "c-old outdated starting deployment/orders", "d-new current starting")
	found, _ = listed(t, "missing", "-A")
	expect(t, found, "a-missed missing  deployment/orders")
	found, _ = listed(t, "outdated", "-n", ns)
	expect(t, found, "c-old outdated starting deployment/orders")
	found, _ = listed(t, "pods", "d-new", "-n", ns)
	expect(t, found, "d-new current starting")

	code, stdout, stderr := plugin(t, "pods", "-n", ns)
	heading := regexp.MustCompile(`^POD +BROKER +SET +SERVES +REVISION +VERSION +WORKLOAD\na-missed +missing +- +- +- +- +deployment/orders\n`)
	if code != program.ExitOK || stderr != "" || !heading.MatchString(stdout) {
		t.Errorf("exit code %d, found %s\n%s", code, stderr, stdout)
	}
	code, stdout, _ = plugin(t, "pods", "-A", "-o", "wide")
	if code != program.ExitOK || !strings.HasPrefix(stdout, "NAMESPACE ") || !strings.Contains(stdout, "the pod has no node yet") {
		t.Errorf("exit code %d, found\n%s", code, stdout)
	}
	if code, _, stderr := plugin(t, "pods", "b-declined", "-n", ns); code != program.ExitFailed || !strings.Contains(stderr, `of the name "b-declined": kubectl crypto-broker explain says why`) {
		t.Errorf("exit code %d, found %q", code, stderr)
	}
	if code, stdout, stderr := plugin(t, "pods", "-n", uncovered(t)); code != program.ExitOK || stdout != "" || stderr != "No pods found.\n" {
		t.Errorf("exit code %d, found %q, %q", code, stdout, stderr)
	}
}

func TestABrokerInANamespaceThatIsLeftOutIsNotJudged(t *testing.T) {
	ns := covered(t)
	makePod(t, ns, "app", "true", nil)
	patch := []byte(`{"metadata":{"labels":{"covered":"no"}}}`)
	if _, err := apiServer.CoreV1().Namespaces().Patch(t.Context(), ns, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	found, stderr := listed(t, "pods", "-n", ns)
	expect(t, found, "app present starting")
	if stderr != "" {
		t.Errorf("found %q", stderr)
	}
	found, _ = listed(t, "outdated", "-n", ns)
	expect(t, found)
}

func TestAPodIsExplained(t *testing.T) {
	ns := uncovered(t)
	set := makeDeployment(t, ns, "orders", asks())
	makePod(t, ns, "early", "true", set)
	makePod(t, ns, "silent", "", nil)
	left := uncovered(t)
	makePod(t, left, "left-out", "true", nil)
	label(t, ns)
	makePod(t, ns, "fine", "true", nil)
	for pod, test := range map[string]struct {
		namespace string
		code      int
		says      string
	}{
		"early":    {ns, program.ExitFailed, "has no broker, though it should have one."},
		"silent":   {ns, program.ExitOK, `it needs the annotation cryptobroker.io/inject: "true" when it is created`},
		"fine":     {ns, program.ExitFailed, "has a broker, as it should, which has not started yet."},
		"left-out": {left, program.ExitFailed, "has no broker, though it asks for one."},
	} {
		t.Run(pod, func(t *testing.T) {
			code, stdout, stderr := plugin(t, "explain", pod, "-n", test.namespace)
			if code != test.code || !strings.Contains(stdout, test.says) {
				t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
			}
		})
	}
	_, stdout, _ := plugin(t, "explain", "early", "-n", ns)
	for _, says := range []string{
		"has no label cryptobroker.io/injection=enabled", `cryptobroker.io/inject is "true"`, "covers the namespace since",
		"Restart it: kubectl crypto-broker restart deployment/orders -n " + ns,
	} {
		if !strings.Contains(stdout, says) {
			t.Errorf("%q is not in\n%s", says, stdout)
		}
	}
	if code, _, stderr := plugin(t, "explain", "nobody", "-n", ns); code != program.ExitFailed || !strings.Contains(stderr, `pods "nobody" not found in namespace `+ns+`; a workload is named with its kind, such as deployment/nobody`) {
		t.Errorf("exit code %d, found %q", code, stderr)
	}
}

// rollOut acts like the controllers of a cluster: it replaces the pods of each changed Deployment at once, except for the
// Deployment that is stuck.
func rollOut(t *testing.T, namespace, stuck string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	events, err := apiServer.AppsV1().Deployments(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			d, ok := event.Object.(*appsv1.Deployment)
			if !ok || d.Name == stuck || d.Status.ObservedGeneration == d.Generation {
				continue
			}
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
			if _, err := apiServer.AppsV1().Deployments(namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{}); err != nil && ctx.Err() == nil {
				t.Logf("the status of %s: %v", d.Name, err) // changed at the same time: the event of that change follows
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		events.Stop()
		<-done
	})
}

// restarted returns the deployments that were restarted.
func restarted(t *testing.T, namespace string) (names []string) {
	t.Helper()
	all, err := apiServer.AppsV1().Deployments(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all.Items {
		if at := d.Spec.Template.Annotations[restartedAt]; at != "" {
			if _, err := time.Parse(time.RFC3339, at); err != nil {
				t.Error(err)
			}
			names = append(names, d.Name)
		}
	}
	return names
}

func TestWorkloadsAreRestartedOneAtATime(t *testing.T) {
	ns := uncovered(t)
	for _, name := range []string{"a", "b", "fine"} {
		set := makeDeployment(t, ns, name, annotated(map[string]string{contract.InjectAnnotation: "true"}))
		if name != "fine" {
			makePod(t, ns, name, "true", set)
		}
	}
	makePod(t, ns, "alone", "true", nil)
	label(t, ns)
	rollOut(t, ns, "")
	code, stdout, stderr := plugin(t, "restart", "--missing", "-n", ns, "--dry-run")
	if code != program.ExitOK || stdout != "deployment/a in namespace "+ns+"\ndeployment/b in namespace "+ns+"\n" ||
		!strings.Contains(stderr, "pod "+ns+"/alone is missing and belongs to no workload: it cannot be restarted here") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	if names := restarted(t, ns); names != nil {
		t.Errorf("a dry run restarted %q", names)
	}
	code, stdout, stderr = plugin(t, "restart", "--missing", "-n", ns)
	if code != program.ExitFailed || !strings.Contains(stdout, "Restart these 2, one at a time? [y/N]") || !strings.Contains(stderr, "nothing was restarted: it was not confirmed") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	code, stdout, stderr = call(t, "y\n", "restart", "--missing", "-n", ns, "--kubeconfig", kubeconfig)
	if code != program.ExitOK || !strings.Contains(stdout, "2/2 deployment/b in namespace "+ns+": done after") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	if begin, end := strings.Index(stdout, "2/2 deployment/b"), strings.Index(stdout, "1/2 deployment/a in namespace "+ns+": done"); begin < end || end < 0 {
		t.Errorf("the second began before the first was done:\n%s", stdout)
	}
	expect(t, restarted(t, ns), "a", "b")
}

func TestARestartEndsAtTheFirstThatDoesNotComeUp(t *testing.T) {
	ns := uncovered(t)
	makeDeployment(t, ns, "a")
	makeDeployment(t, ns, "b")
	rollOut(t, ns, "a")
	code, stdout, stderr := plugin(t, "restart", "deploy/a", "deployment/b", "-n", ns, "--yes", "--timeout", "2s")
	if code != program.ExitFailed || !strings.Contains(stderr, "deployment/a in namespace "+ns+": it did not come up within 2s") ||
		!strings.Contains(stderr, "the other one was not restarted") || !strings.Contains(stdout, "of 1 new pods are available") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	expect(t, restarted(t, ns), "a")
}

func TestWhatCannotBeRestartedIsSaidBeforeAnythingIs(t *testing.T) {
	ns := uncovered(t)
	makeDeployment(t, ns, "a")
	makeDeployment(t, ns, "paused", func(d *appsv1.Deployment) { d.Spec.Paused = true })
	code, _, stderr := plugin(t, "restart", "deploy/a", "deploy/paused", "sts/none", "-n", ns, "--yes")
	if code != program.ExitFailed || !strings.Contains(stderr, "its rollout is paused") || !strings.Contains(stderr, `statefulsets.apps "none" not found`) {
		t.Errorf("exit code %d, found %q", code, stderr)
	}
	expect(t, restarted(t, ns))
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
	_, err := apiServer.AppsV1().DaemonSets(ns).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := plugin(t, "restart", "ds/agent", "-n", ns, "--yes"); code != program.ExitFailed || !strings.Contains(stderr, "OnDelete") {
		t.Errorf("exit code %d, found %q", code, stderr)
	}
}

func TestValidateSaysOfAShapeWhatTheAPIServerSays(t *testing.T) {
	documents, err := manifest.ReadDocuments([]string{"testdata/shapes.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := manifest.ReadSchemas()
	if err != nil {
		t.Fatal(err)
	}
	ns, bad := uncovered(t), 0
	for _, d := range documents {
		_, problems, err := schemas.Check(t.Context(), d.Text("kind"), d.Object)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(d.Object)
		if err != nil {
			t.Fatal(err)
		}
		err = apiServer.CoreV1().RESTClient().Post().AbsPath("/apis/cryptobroker.io/v1alpha1/namespaces", ns, "cryptoprofiles").
			Param("dryRun", "All").Param("fieldValidation", "Strict").Body(data).Do(t.Context()).Error()
		if (err == nil) != (len(problems) == 0) {
			t.Errorf("%s: the API server says %v, the plugin %q", d.Name(), err, problems)
		}
		for _, problem := range problems {
			bad++
			// Kubernetes 1.30 names the type of the value, too.
			if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), `Invalid value: "object": `, `Invalid value: `), problem) {
				t.Errorf("%s: the API server says\n%v\nthe plugin\n%s", d.Name(), err, problem)
			}
		}
	}
	if bad < 6 {
		t.Errorf("%d problems were found, expected at least 6", bad)
	}
}
