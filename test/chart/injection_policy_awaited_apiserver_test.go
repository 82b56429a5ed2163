// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package chart

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// mutateLater applies a patch to each pod of the namespace that has a broker already and meets the condition. The API server does
// not define which of two policies comes first, and it applies only a policy again that it has applied before. So the policy itself
// always applies, and the condition is part of the mutation.
func mutateLater(t *testing.T, admin client.Client, namespace, condition, patch string) {
	t.Helper()
	name := "other-of-" + namespace
	create(t, admin, &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionv1.IfNeededReinvocationPolicy,
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			Mutations: []admissionv1.Mutation{{
				PatchType: admissionv1.PatchTypeJSONPatch,
				JSONPatch: &admissionv1.JSONPatch{Expression: `object.spec.?initContainers.orValue([]).exists(c, c.name == 'crypto-broker') && ` +
					condition + ` ? ` + patch + ` : []`},
			}},
		},
	})
	create(t, admin, &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	})
}

// addAgentsLater adds the container "agent" to each pod of the namespace that has a
// broker already: at a place among the containers, or as the first init container.
func addAgentsLater(t *testing.T, admin client.Client, namespace, path string) {
	t.Helper()
	list, _, _ := strings.Cut(strings.TrimPrefix(path, "/spec/"), "/")
	mutateLater(t, admin, namespace, `!object.spec.containers.exists(c, c.name == 'agent') && !object.spec.initContainers.exists(c, c.name == 'agent')`,
		`[JSONPatch{op: 'add', path: '`+path+`', value: Object.spec.`+list+`{name: 'agent', image: 'example.com/agent:1'} }]`)
	eventually(t, "the other policy", func(ctx context.Context) error {
		pod := plainPod(namespace, "await")
		pod.Annotations = map[string]string{contract.InjectAnnotation: "true"}
		if err := admin.Create(ctx, pod, client.DryRunAll); err != nil {
			return err
		}
		if !slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c corev1.Container) bool { return c.Name == "agent" }) {
			return errors.New("found a pod without an agent")
		}
		return nil
	})
}

func naming(namespace string, annotations ...string) *corev1.Pod {
	pod := plainPod(namespace, "pod")
	pod.Annotations = map[string]string{contract.InjectAnnotation: "true"}
	for i := 0; i < len(annotations); i += 2 {
		pod.Annotations[annotations[i]] = annotations[i+1]
	}
	return pod
}

func policyGivesALaterContainerItsSocketIfItIsNamed(t *testing.T, admin client.Client) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, admin, namespace)
	addAgentsLater(t, admin, namespace.Name, "/spec/containers/0")

	t.Run("named", func(t *testing.T) {
		pod := naming(namespace.Name, contract.ContainersAnnotation, "app, agent", contract.ContainerProfilesPrefix+"agent", "Default")
		if err := admin.Create(t.Context(), pod, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		found := injectionOf(pod)
		for _, name := range []string{"app", "agent"} {
			want := []corev1.VolumeMount{{Name: contract.SocketVolume, MountPath: "/tmp/open-crypto-broker", SubPath: name, ReadOnly: true}}
			if diff := cmp.Diff(want, found.Mounts[name]); diff != "" {
				t.Errorf("the container %s has other mounts (-want +found):\n%s", name, diff)
			}
			if variables := found.Variables[name]; len(variables) != 1 || variables[0].Name != "CRYPTO_BROKER_SOCKET" {
				t.Errorf("the container %s has the variables %v, expected the variable of the socket", name, variables)
			}
		}
		for _, want := range []string{"--callers=app,agent", "--caller-profiles=agent=Default"} {
			if !slices.Contains(found.Broker.Args, want) {
				t.Errorf("the broker has the arguments %q, expected %s among them", found.Broker.Args, want)
			}
		}
	})
	t.Run("not named", func(t *testing.T) {
		pod := naming(namespace.Name)
		if err := admin.Create(t.Context(), pod, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		if mounts := injectionOf(pod).Mounts["agent"]; len(mounts) > 0 {
			t.Errorf("the agent mounts %v, expected nothing", mounts)
		}
	})
	for sentence, test := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"misspelt": {naming(namespace.Name, contract.ContainersAnnotation, "app,agnet"),
			`metadata.annotations[cryptobroker.io/containers]: found "app,agnet", expected names of containers of the pod`},
		"with profiles and not named": {naming(namespace.Name, contract.ContainerProfilesPrefix+"agent", "Default"),
			`metadata.annotations[cryptobroker.io/profiles.agent]: found "Default", expected no such annotation: of the pod's containers these get a socket: app; a container that another injector adds later`},
	} {
		t.Run(sentence, func(t *testing.T) {
			if err := admin.Create(t.Context(), test.pod, client.DryRunAll); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("found %v, expected a refusal that says %s", err, test.want)
			}
		})
	}
}

func policyRefusesANamedContainerInFrontOfTheBroker(t *testing.T, admin client.Client) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, admin, namespace)
	addAgentsLater(t, admin, namespace.Name, "/spec/initContainers/0")
	err := admin.Create(t.Context(), naming(namespace.Name, contract.ContainersAnnotation, "app,agent"), client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), "found no socket in one of the containers app, agent") {
		t.Errorf("found %v, expected a refusal", err)
	}
}
