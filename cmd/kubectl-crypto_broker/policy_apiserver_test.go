// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/manifest"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
)

// injectByPolicy installs a policy for one namespace that works like the chart's policy, but injects less.
func injectByPolicy(t *testing.T, namespace string) (policy, binding string) {
	t.Helper()
	name := "inject-" + namespace
	objects := apiServer.AdmissionregistrationV1()
	_, err := objects.MutatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			ParamKind:          &admissionregistrationv1.ParamKind{APIVersion: v1alpha1.GroupVersion.String(), Kind: "InjectionTemplate"},
			FailurePolicy:      new(admissionregistrationv1.Fail),
			ReinvocationPolicy: admissionregistrationv1.IfNeededReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: `[JSONPatch{op: "add", path: "/metadata/labels", value: {"stamped": params.spec.stamp}}]`},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := objects.MutatingAdmissionPolicies().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return name, name
}

func bind(t *testing.T, name, template string) {
	t.Helper()
	bindings := apiServer.AdmissionregistrationV1().MutatingAdmissionPolicyBindings()
	_, err := bindings.Create(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{
			PolicyName: name,
			ParamRef:   &admissionregistrationv1.ParamRef{Name: template, ParameterNotFoundAction: new(admissionregistrationv1.DenyAction)},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bindings.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// admitted waits until a dry run of a pod that asks for a broker has the expected result.
func admitted(t *testing.T, namespace, what string, so func(*corev1.Pod, error) bool) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		pod, err := apiServer.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "try-", Annotations: map[string]string{contract.InjectAnnotation: "true"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		last = err
		return so(pod, err), nil
	})
	if err != nil {
		t.Fatalf("a dry run did not come out so that %s: %v", what, last)
	}
}

func TestAPolicyIsExplainedAsTheAPIServerActs(t *testing.T) {
	ns := uncovered(t)
	makePod(t, ns, "orders", "true", nil)
	if !apiserver.ServesMutatingPolicies(t, apiServerConfig) {
		code, stdout, stderr := plugin(t, "explain", "orders", "-n", ns)
		if code != program.ExitFailed || !strings.Contains(stdout, "webhook") || strings.Contains(stdout+stderr, "policy") {
			t.Errorf("found the exit code %d and\n%s%s\nexpected the webhook alone to be explained", code, stdout, stderr)
		}
		return
	}
	policy, binding := injectByPolicy(t, ns)
	template := "template-" + ns
	explained(t, ns, "orders", program.ExitFailed, policy+" covers the namespace since", "the policy "+policy+" has no binding, so it does nothing")

	bind(t, binding, template)
	admitted(t, ns, "it is refused", func(_ *corev1.Pod, err error) bool { return err != nil })
	explained(t, ns, "orders", program.ExitFailed, binding+" takes the InjectionTemplate "+template, "the InjectionTemplate "+template+" is missing", "new pods that ask for a broker are refused until then.")

	body := fmt.Sprintf(`{"apiVersion":%q,"kind":"InjectionTemplate","metadata":{"name":%q},"spec":{"container":{"name":"crypto-broker","image":"broker:7"},"volumes":[],"firstArguments":[],"socketGroup":7,"statusPort":9470,"stamp":"seven"}}`,
		v1alpha1.GroupVersion, template)
	path := "/apis/cryptobroker.io/v1alpha1/injectiontemplates"
	if err := apiServer.CoreV1().RESTClient().Post().AbsPath(path).Body([]byte(body)).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := apiServer.CoreV1().RESTClient().Delete().AbsPath(path, template).Do(context.Background()).Error(); err != nil {
			t.Error(err)
		}
	})
	admitted(t, ns, "it is stamped", func(pod *corev1.Pod, err error) bool { return err == nil && pod.Labels["stamped"] == "seven" })
	explained(t, ns, "orders", program.ExitFailed, "image broker:7, stamp seven", "A restart would not bring a broker now: a new pod gets no broker: ")
}

// viewer returns a kubeconfig of a user who may only view one namespace.
func viewer(t *testing.T, namespace string) string {
	t.Helper()
	user := "viewer-of-" + namespace
	_, err := apiServer.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "view"},
		// The role view aggregates such roles. A controller does that, which does not run here.
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:aggregate-to-view"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	may := func() bool {
		code, _, _ := plugin(t, "missing", "-n", namespace, "--as", user)
		return code == program.ExitOK
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) { return may(), nil }); err != nil {
		t.Fatalf("%s may not view: %v", user, err)
	}
	return user
}

func TestWhoMayOnlyViewIsToldWhichRightIsMissingAndShownTheRest(t *testing.T) {
	ns := covered(t)
	set := makeDeployment(t, ns, "orders")
	makePod(t, ns, "fine", "true", set)
	user := viewer(t, ns)
	tests := map[string]struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"pods": {[]string{"pods", "-n", ns}, program.ExitOK, "fine   present   starting",
			"note: it is not known which brokers are outdated: the right to create pods in namespace " + ns + " is missing (user " + user + ")\n"},
		"all namespaces": {[]string{"pods", "-A"}, program.ExitFailed, "",
			"the right to list pods in all namespaces is missing (user " + user + "): name one namespace with -n\n"},
		"outdated": {[]string{"outdated", "-n", ns}, program.ExitFailed, "", "it is not known which brokers are outdated: the right to create pods in namespace " + ns + " is missing"},
		"explain":  {[]string{"explain", "fine", "-n", ns}, program.ExitFailed, "whether the operator is called is not known: the right to list mutatingwebhookconfigurations is missing (user " + user + ")", ""},
		"restart": {[]string{"restart", "deploy/orders", "-n", ns, "--yes"}, program.ExitFailed, "",
			"nothing was restarted: deployment/orders in namespace " + ns + " cannot be restarted: the right to patch deployments in namespace " + ns + " is missing (user " + user + ")\n"},
		"inject from the cluster": {[]string{"inject", "-f", "testdata/app.yaml", "--from-cluster", "-n", ns}, program.ExitFailed, "", "the right to create pods in namespace"},
		"another namespace":       {[]string{"pods", "-n", "default"}, program.ExitFailed, "", "kubectl crypto-broker pods: the right to list pods in namespace default is missing (user " + user + ")\n"},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			code, stdout, stderr := plugin(t, append(test.args, "--as", user)...)
			if code != test.code || !strings.Contains(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) || strings.Contains(stdout+stderr, "is forbidden") {
				t.Errorf("exit code %d, expected %d\n%s%s", code, test.code, stderr, stdout)
			}
		})
	}
}

func TestInjectFromAClusterPrintsWhatAdmissionMakes(t *testing.T) {
	ns := covered(t)
	if _, err := apiServer.CoreV1().ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "app.yaml")
	const content = `# stays
apiVersion: v1
kind: Service
metadata: {name: orders}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: orders}
spec:
  replicas: 3
  unknownField: stays
  template:
    metadata:
      annotations: {cryptobroker.io/inject: "true"}
    spec:
      initContainers: [{name: migrate, image: migrate}]
      containers: [{name: app, image: app, env: [{name: A, value: b}]}]
---
apiVersion: v1
kind: Pod
metadata: {name: silent}
spec: {containers: [{name: app, image: app}]}
`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := plugin(t, "inject", "-f", file, "--from-cluster", "-n", ns)
	if code != program.ExitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	documents, err := manifest.ReadObjects([]string{"-"}, strings.NewReader(stdout))
	if err != nil || len(documents) != 3 {
		t.Fatalf("%v, found %d documents\n%s", err, len(documents), stdout)
	}
	p, err := documents[1].Template(ns)
	if err != nil {
		t.Fatal(err)
	}
	broker := injected.Broker(p.Pod)
	if broker == nil || broker.Image != operatorImage.Load() || p.Pod.Spec.InitContainers[0].Name != contract.BrokerContainer || len(p.Pod.Spec.InitContainers) != 2 {
		t.Fatalf("found the init containers %+v\n%s", p.Pod.Spec.InitContainers, stdout)
	}
	for _, says := range []string{"# stays\n", "unknownField: stays", "replicas: 3", "# kubectl crypto-broker inject: made with the changes of the cluster's admission", "cryptobroker.io/injected:", "mountPath: /tmp/open-crypto-broker"} {
		if !strings.Contains(stdout, says) {
			t.Errorf("%q is not in\n%s", says, stdout)
		}
	}
	for _, extra := range []string{"kube-api-access", "terminationMessagePath: /dev/termination-log\n          volumeMounts:\n          - mountPath: /tmp", "schedulerName", "cryptobroker.io/inject: \"false\"", "$setElementOrder", "$retainKeys"} {
		if strings.Contains(stdout, extra) {
			t.Errorf("%q is in\n%s", extra, stdout)
		}
	}
	if !strings.Contains(stderr, `Pod "silent": gets no broker: not asked`) {
		t.Errorf("found %q", stderr)
	}

	for sentence, test := range map[string]struct {
		namespace, manifest, says string
	}{
		"a namespace that there is not":       {"nowhere", file, `namespace "nowhere" is not in the cluster, where a dry run needs it: create it, or leave --from-cluster out`},
		"one for which nothing is called":     {uncovered(t), file, `Deployment "orders": gets no broker: the operator is not installed, or is not called for namespace`},
		"a pod that the operator refuses too": {ns, "testdata/refused.yaml", `Pod "wants-too-much": is refused: `},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, stdout, stderr := plugin(t, "inject", "-f", test.manifest, "--from-cluster", "-n", test.namespace)
			if !strings.Contains(stderr, test.says) {
				t.Errorf("found %s\n%s", stderr, stdout)
			}
		})
	}
}

func TestNamesAreCompletedFromTheCluster(t *testing.T) {
	ns := uncovered(t)
	set := makeDeployment(t, ns, "orders")
	makePod(t, ns, "orders-1-x", "", set)
	for want, args := range map[string][]string{
		"orders-1-x\ndeployment/orders\n": {"__complete", "explain", "-n", ns, "--kubeconfig", kubeconfig, ""},
		"deployment/orders\n":             {"__complete", "restart", "-n", ns, "--kubeconfig", kubeconfig, ""},
		ns + "\n":                         {"__complete", "pods", "--kubeconfig", kubeconfig, "-n", ""},
	} {
		if code, stdout, stderr := call(t, "", args...); code != program.ExitOK || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, %q is not in %q, %q", code, want, stdout, stderr)
		}
	}
	if code, _, stderr := plugin(t, "pods", "-n", "nowhere"); code != program.ExitFailed || !strings.Contains(stderr, `there is no namespace "nowhere"`) {
		t.Errorf("exit code %d, found %q", code, stderr)
	}
}
