// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/check"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

// checked runs the command check for an installation.
func checked(t *testing.T, in *fixtureInstallation, more ...string) (code int, found map[string]check.Finding, output string) {
	t.Helper()
	code, stdout, stderr := plugin(t, append([]string{"check", "-o", "json", "-n", in.namespace, "--operator-namespace", in.operator}, more...)...)
	var answer struct{ Checks []check.Finding }
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil {
		t.Fatalf("exit code %d, %v: %s%s", code, err, stdout, stderr)
	}
	found = map[string]check.Finding{}
	for _, f := range answer.Checks {
		found[f.Check] = f
	}
	return code, found, stdout
}

func TestASoundInstallationIsFoundSound(t *testing.T) {
	in := install(t)
	var last string
	eventually(t, "all is found to be sound", func() bool {
		code, found, output := checked(t, in)
		last = output
		for _, f := range found {
			if f.State != check.OK {
				t.Logf("%s %s: %s", f.State, f.Check, f.Found)
				return false
			}
		}
		return code == program.ExitOK && len(found) == 14
	})
	t.Log(last)
	code, stdout, stderr := plugin(t, "check", "-n", in.namespace, "--operator-namespace", in.operator)
	if code != program.ExitOK || stderr != "" || strings.Count(stdout, "\n") != 14 || !strings.HasPrefix(stdout, "OK   definitions ") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	t.Log(stdout)
}

// patch changes an object of the API server.
func patch(t *testing.T, kind types.PatchType, body string, path ...string) {
	t.Helper()
	if err := apiServer.CoreV1().RESTClient().Patch(kind).AbsPath(path...).Body([]byte(body)).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
}

// remove deletes an object of the API server.
func remove(t *testing.T, path ...string) {
	t.Helper()
	if err := apiServer.CoreV1().RESTClient().Delete().AbsPath(path...).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
}

const registration = "/apis/admissionregistration.k8s.io/v1"

func TestWhatIsWrongWithAnInstallationIsFound(t *testing.T) {
	for sentence, test := range map[string]struct {
		wrong func(*testing.T, *fixtureInstallation)
		check string
		state check.State
		says  string
	}{
		"the operator is scaled to no replica": {func(t *testing.T, in *fixtureInstallation) {
			patch(t, types.MergePatchType, `{"spec":{"replicas":0}}`, "/apis/apps/v1/namespaces", in.operator, "deployments", in.name)
		}, "operator", check.Failed, "The operator is scaled to no replica. Scale it: kubectl scale deployment/"},
		"no replica is available": {func(t *testing.T, in *fixtureInstallation) { in.available(t, 0) }, "operator", check.Failed, "The operator does not run. See why: "},
		"one replica is missing":  {func(t *testing.T, in *fixtureInstallation) { in.available(t, 1) }, "operator", check.Warning, "has 1 of 2 replicas available"},
		"a rollout goes on": {func(t *testing.T, in *fixtureInstallation) {
			d, err := apiServer.AppsV1().Deployments(in.operator).Get(t.Context(), in.name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 3, UpdatedReplicas: 1, ReadyReplicas: 2, AvailableReplicas: 2}
			if _, err := apiServer.AppsV1().Deployments(in.operator).UpdateStatus(t.Context(), d, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}, "operator", check.Warning, "its rollout goes on"},
		"the leader is gone": {func(_ *testing.T, in *fixtureInstallation) { in.resign() }, "leader", check.Failed, "replica-1 has not renewed the Lease crypto-broker-operator for 3s"},
		"there was never a leader": {func(t *testing.T, in *fixtureInstallation) {
			in.resign()
			eventually(t, "the Lease is deleted", func() bool {
				err := apiServer.CoordinationV1().Leases(in.operator).Delete(t.Context(), "crypto-broker-operator", metav1.DeleteOptions{})
				return apierrors.IsNotFound(err)
			})
		}, "leader", check.Failed, "there is no Lease crypto-broker-operator"},
		"no endpoint is ready": {func(t *testing.T, in *fixtureInstallation) {
			patch(t, types.MergePatchType, `{"endpoints":[{"addresses":["10.0.0.1"],"conditions":{"ready":false}}]}`, "/apis/discovery.k8s.io/v1/namespaces", in.operator, "endpointslices/webhook-1")
		}, "service", check.Failed, "the Service webhook in namespace"},
		"a webhook is missing": {func(t *testing.T, in *fixtureInstallation) {
			patch(t, types.JSONPatchType, `[{"op":"remove","path":"/webhooks/1"}]`, registration, "mutatingwebhookconfigurations", in.name)
		}, "webhooks", check.Failed, "the webhooks annotated.inject are not configured"},
		"a caBundle is empty": {func(t *testing.T, in *fixtureInstallation) {
			patch(t, types.JSONPatchType, `[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`, registration, "mutatingwebhookconfigurations", in.name)
		}, "webhooks", check.Failed, "the caBundle of the webhooks labelled.inject is empty"},
		"failures are ignored": {func(t *testing.T, in *fixtureInstallation) {
			patch(t, types.JSONPatchType, `[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]`, registration, "mutatingwebhookconfigurations", in.name)
		}, "webhooks", check.Warning, "the failurePolicy of the webhooks labelled.inject is Ignore"},
		"the operator cannot be reached for pods":     {func(_ *testing.T, in *fixtureInstallation) { in.server.Close() }, "injection", check.Failed, "the API server cannot call the operator, because the network"},
		"the operator cannot be reached for profiles": {func(_ *testing.T, in *fixtureInstallation) { in.server.Close() }, "validation", check.Failed, "the API server cannot call the operator, because the network"},
		"nobody can tell whether the certificate is accepted": {func(_ *testing.T, in *fixtureInstallation) { in.server.Close() }, "certificate", check.Skipped,
			"cannot tell whether the API server accepts the serving certificate, because no webhook has answered"},
		"the certificate is of another authority": {func(t *testing.T, in *fixtureInstallation) { in.trust(t) }, "certificate", check.Failed, "the API server does not accept the serving certificate: "},
		"profiles are not checked": {func(t *testing.T, in *fixtureInstallation) {
			patch(t, types.JSONPatchType, `[{"op":"replace","path":"/webhooks","value":[]}]`, registration, "validatingwebhookconfigurations", in.name)
		}, "validation", check.Failed, "the API server accepts an invalid profile"},
		"there is no signing key": {func(t *testing.T, in *fixtureInstallation) {
			remove(t, "/api/v1/namespaces", in.operator, "secrets/signing")
		}, "signing key", check.Failed, "there is no Secret signing"},
		"the signing key is old": {func(t *testing.T, in *fixtureInstallation) {
			patch(t, types.MergePatchType, `{"metadata":{"annotations":{"cryptobroker.io/signing-key-current-since":"2020-01-01T00:00:00Z"}}}`, "/api/v1/namespaces", in.operator, "secrets/signing")
		}, "signing key", check.Warning, "it should have been replaced after 2160h0m0s"},
		"a policy is missing": {func(t *testing.T, in *fixtureInstallation) {
			remove(t, registration, "validatingadmissionpolicies", in.name+"-broker-exec")
		}, "policies", check.Warning, "-broker-exec are not installed"},
		"a policy is not bound": {func(t *testing.T, in *fixtureInstallation) {
			remove(t, registration, "validatingadmissionpolicybindings", in.name+"-broker-exec")
		}, "policies", check.Failed, "-broker-exec (Deny) have no binding"},
		"a policy does not deny": {func(t *testing.T, in *fixtureInstallation) {
			patch(t, types.MergePatchType, `{"spec":{"validationActions":["Audit"]}}`, registration, "validatingadmissionpolicybindings", in.name+"-pod-status")
		}, "policies", check.Failed, "-pod-status (Deny) have no binding"},
		"the template is missing": {func(t *testing.T, in *fixtureInstallation) {
			remove(t, "/apis/cryptobroker.io/v1alpha1/injectiontemplates", in.name)
		}, "template", check.Warning, "the InjectionTemplate sound-"},
		"the template is another one": {func(t *testing.T, in *fixtureInstallation) {
			patch(t, types.MergePatchType, `{"spec":{"stamp":"0.9.0/other"}}`, "/apis/cryptobroker.io/v1alpha1/injectiontemplates", in.name)
		}, "template", check.Warning, "and a new pod gets the stamp"},
		"the template has another image": {func(t *testing.T, in *fixtureInstallation) {
			patch(t, types.MergePatchType, `{"spec":{"container":{"image":"broker:0"}}}`, "/apis/cryptobroker.io/v1alpha1/injectiontemplates", in.name)
		}, "template", check.Warning, "and the operator should inject broker:1"},
		"a label has no effect": {func(t *testing.T, in *fixtureInstallation) {
			patch(t, types.MergePatchType, `{"metadata":{"labels":{"cryptobroker.io/injection":"true"}}}`, "/api/v1/namespaces", in.namespace)
		}, "namespaces", check.Warning, `("true"): expected the value "enabled", or no such label`},
		"the operator's own namespace asks for brokers": {func(t *testing.T, in *fixtureInstallation) {
			patch(t, types.MergePatchType, `{"metadata":{"labels":{"cryptobroker.io/injection":"enabled"}}}`, "/api/v1/namespaces", in.operator)
		}, "namespaces", check.Warning, "because the operator leaves them out"},
		"a broker is of another version": {func(t *testing.T, in *fixtureInstallation) {
			pod := makePod(t, in.namespace, "older", "true", nil)
			patch(t, types.MergePatchType, `{"metadata":{"annotations":{"cryptobroker.io/injected":"0.0.1/other"}}}`, "/api/v1/namespaces", in.namespace, "pods", pod.Name)
		}, "versions", check.Warning, "1 of 0.0.1"},
		"a resource definition is of another version": {func(t *testing.T, _ *fixtureInstallation) { otherDefinition(t) }, "definitions", check.Warning, "injectiontemplates.cryptobroker.io has another schema than this plugin"},
	} {
		t.Run(sentence, func(t *testing.T) {
			in := install(t)
			test.wrong(t, in)
			var last check.Finding
			var code int
			defer func() { t.Logf("exit code %d, %+v", code, last) }()
			eventually(t, "the check finds it", func() bool {
				var found map[string]check.Finding
				code, found, _ = checked(t, in)
				last = found[test.check]
				return last.State == test.state && strings.Contains(last.Found, test.says)
			})
			if wrong := test.state != check.Warning; wrong && code != program.ExitFailed {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// trust has the API server trust another authority.
func (in *fixtureInstallation) trust(t *testing.T) {
	t.Helper()
	_, other := authority(t, "webhook."+in.operator+".svc")
	objects := apiServer.AdmissionregistrationV1()
	mutating, err := objects.MutatingWebhookConfigurations().Get(t.Context(), in.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig.CABundle = other
	}
	if _, err := objects.MutatingWebhookConfigurations().Update(t.Context(), mutating, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	validating, err := objects.ValidatingWebhookConfigurations().Get(t.Context(), in.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig.CABundle = other
	}
	if _, err := objects.ValidatingWebhookConfigurations().Update(t.Context(), validating, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestADegradedProfileIsFound(t *testing.T) {
	for reason, says := range map[string]string{
		v1alpha1.ReasonSetRefused:  "cprof/degraded in namespace default (SetRefused): kubectl describe says why; kubectl crypto-broker restart --refused -A restarts",
		v1alpha1.ReasonNotAccepted: "cprof/degraded in namespace default (NotAccepted): kubectl describe says why",
	} {
		t.Run(reason, func(t *testing.T) {
			degradedProfile(t, reason) // before the installation, whose webhook refuses all profiles
			in := install(t)
			var last check.Finding
			defer func() { t.Logf("%+v", last) }()
			eventually(t, "the check finds it", func() bool {
				_, found, _ := checked(t, in)
				last = found["profiles"]
				return last.State == check.Warning && strings.Contains(last.Found, says)
			})
		})
	}
}

// degradedProfile makes a profile whose status says that it is degraded. The profile exists until the test ends.
func degradedProfile(t *testing.T, reason string) {
	t.Helper()
	path := []string{"/apis/cryptobroker.io/v1alpha1/namespaces/default/cryptoprofiles"}
	p := v1alpha1.CryptoProfile{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: downgrade.KindNamespaced},
		ObjectMeta: metav1.ObjectMeta{Name: "degraded"},
		Spec:       v1alpha1.ProfileSpec{API: v1alpha1.Operations{HashData: &v1alpha1.HashData{HashAlg: "sha3-512"}}},
	}
	body, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := apiServer.CoreV1().RESTClient().Post().AbsPath(path...).Body(body).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	path = append(path, p.Name)
	t.Cleanup(func() {
		if err := apiServer.CoreV1().RESTClient().Delete().AbsPath(path...).Do(context.Background()).Error(); err != nil {
			t.Error(err)
		}
	})
	patch(t, types.MergePatchType, fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":"True","reason":%q,"message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
		v1alpha1.ConditionDegraded, reason), append(path, "status")...)
}

// otherDefinition changes a description in a resource definition until the test ends.
func otherDefinition(t *testing.T) {
	t.Helper()
	const at = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/description"
	path := []string{"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/injectiontemplates.cryptobroker.io"}
	set := func(text string) {
		patch(t, types.JSONPatchType, fmt.Sprintf(`[{"op":"replace","path":%q,"value":%q}]`, at, text), path...)
	}
	raw, err := apiServer.CoreV1().RESTClient().Get().AbsPath(path...).Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema struct {
						Properties map[string]struct{ Description string }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(raw, &found); err != nil {
		t.Fatal(err)
	}
	set("another one")
	before := found.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Description
	t.Cleanup(func() {
		body := fmt.Sprintf(`[{"op":"replace","path":%q,"value":%q}]`, at, before)
		if err := apiServer.CoreV1().RESTClient().Patch(types.JSONPatchType).AbsPath(path...).Body([]byte(body)).Do(t.Context()).Error(); err != nil {
			t.Log(err)
		}
	})
}

func TestAUserWithoutRightsIsToldWhatTheCheckCannotTell(t *testing.T) {
	in := install(t)
	user := viewer(t, in.namespace)
	code, found, output := checked(t, in, "--as", user)
	if code != program.ExitFailed {
		t.Errorf("exit code %d", code)
	}
	for question, f := range found {
		if f.State != check.Skipped || !strings.HasPrefix(f.Found, "cannot tell ") || !strings.Contains(f.Found, "the right to ") || strings.Contains(f.Found, "is forbidden") {
			t.Errorf("%s: found %+v", question, f)
		}
	}
	if len(found) != 14 {
		t.Errorf("found %s", output)
	}
}

func TestAUserWithoutTheRightToSecretsLearnsTheRest(t *testing.T) {
	in := install(t)
	user := viewer(t, in.namespace)
	mayLook(t, user, in.namespace)
	var found map[string]check.Finding
	eventually(t, "all but the key's age is known", func() bool {
		var code int
		code, found, _ = checked(t, in, "--as", user)
		return code == program.ExitOK
	})
	if f := found["signing key"]; f.State == check.Skipped || !strings.Contains(f.Found, "the right to get secrets in namespace "+in.operator+" is missing") {
		t.Errorf("found %+v", f)
	}
}

// mayLook gives a user the rights to read everything that the check reads, except Secrets, and to make dry runs in a namespace.
func mayLook(t *testing.T, user, namespace string) {
	t.Helper()
	rights, name := apiServer.RbacV1(), "looks-"+namespace
	look := []string{"get", "list"}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods", "namespaces", "services"}, Verbs: look},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: look},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: look},
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: look},
		{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"*"}, Verbs: look},
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: look},
		{APIGroups: []string{"cryptobroker.io"}, Resources: []string{"injectiontemplates", "cryptoprofiles", "clustercryptoprofiles"}, Verbs: look},
		{APIGroups: []string{"", "cryptobroker.io"}, Resources: []string{"pods", "cryptoprofiles"}, Verbs: []string{"create"}},
	}}
	if _, err := rights.ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := rights.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheVersionsOfAClusterArePrinted(t *testing.T) {
	in := install(t)
	makePod(t, in.namespace, "one", "true", nil)
	makePod(t, in.namespace, "two", "true", nil)
	older := makePod(t, in.namespace, "older", "true", nil)
	patch(t, types.MergePatchType, `{"metadata":{"annotations":{"cryptobroker.io/injected":"0.0.1/other"}}}`, "/api/v1/namespaces", in.namespace, "pods", older.Name)
	code, stdout, stderr := plugin(t, "version", "-n", in.namespace, "--operator-namespace", in.operator, "-o", "json")
	var answer versions
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil || code != program.ExitOK {
		t.Fatalf("exit code %d, %v: %s%s", code, err, stdout, stderr)
	}
	running := program.Version(version)
	if o := answer.Operator; o == nil || o.Version != running || o.Image != "operator:0.9.0" || o.Available != 2 || o.Replicas != 2 || o.Namespace != in.operator {
		t.Errorf("found %s", stdout)
	}
	pods := map[string]int{}
	for _, b := range answer.Brokers {
		pods[b.Version] = b.Pods
	}
	if pods[running] != 2 || pods["0.0.1"] != 1 || len(pods) != 2 {
		t.Errorf("found %s", stdout)
	}
	code, stdout, _ = plugin(t, "version", "-n", in.namespace, "--operator-namespace", in.operator)
	if code != program.ExitOK || !strings.HasPrefix(stdout, program.VersionLine("kubectl-crypto_broker", version)+"\noperator   "+running+"   deployment/"+in.name) || !strings.Contains(stdout, "0.0.1") {
		t.Errorf("exit code %d, found\n%s", code, stdout)
	}
	code, stdout, stderr = plugin(t, "version", "--as", viewer(t, in.namespace))
	if code != program.ExitFailed || !strings.HasPrefix(stdout, "kubectl-crypto_broker ") || !strings.Contains(stderr, "the right to list pods in all namespaces is missing") || !strings.Contains(stderr, "name one namespace with -n") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	if code, stdout, _ = plugin(t, "version", "--client"); code != program.ExitOK || strings.Count(stdout, "\n") != 1 {
		t.Errorf("exit code %d, found\n%s", code, stdout)
	}
}
