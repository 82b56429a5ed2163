// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package chart

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
)

// goldenPods is the folder with pods, and with the results of the webhook for them.
const goldenPods = "../../webhook/injection/testdata/pods"

// policyTemplate returns the template of the golden pods, with the changes that the file asks for.
func policyTemplate() template.Template {
	return template.Template{
		Image:         "localhost/crypto-broker/broker:0.1.0",
		AllowedImages: []string{"registry.example/broker:1.2.3", "registry.example/fips/broker@sha256:" + strings.Repeat("5a", 32)},
		PullPolicy:    corev1.PullIfNotPresent,
		SocketGroup:   60471,
		StatusPort:    9470,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("10m"),
				corev1.ResourceMemory: resource.MustParse("32Mi"),
			},
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
		},
		LogLevel: "info",
		Version:  "0.1.0",
	}
}

// The tests share an API server, on which the chart is installed so that it injects by policy.
// Those that change the InjectionTemplate come last.
func TestInjectionByPolicy(t *testing.T) {
	if !apiserver.ServesMutatingPolicies(t, server.config) {
		expectPoliciesRefused(t)
		return
	}
	admin := startPolicyServer(t)
	for _, test := range []struct {
		sentence string
		run      func(*testing.T, client.Client)
	}{
		{"makes the golden pods", policyMakesGoldenPods},
		{"refuses with a sentence", policyRefusesWithASentence},
		{"refuses a copy with another broker", policyRefusesACopyWithAnotherBroker},
		{"gives a later container its socket if it is named", policyGivesALaterContainerItsSocketIfItIsNamed},
		{"refuses a named container that comes in front of the broker", policyRefusesANamedContainerInFrontOfTheBroker},
		{"makes the golden pod whose broker exports spans", policyMakesTheGoldenPodWhoseBrokerExportsSpans},
		{"makes the golden pod whose broker sends audit records", policyMakesTheGoldenPodWhoseBrokerSendsAuditRecords},
		{"refuses a copy that exports its spans elsewhere", policyRefusesACopyThatExportsItsSpansElsewhere},
		{"tells brokers whom to trust and where", policyTellsBrokersWhomToTrustAndWhere},
		{"gives a broker the amounts of its pod where the chart has none", policyGivesABrokerTheAmountsOfItsPodWhereTheChartHasNone},
	} {
		t.Run(test.sentence, func(t *testing.T) { test.run(t, admin) })
	}
}

// expectPoliciesRefused fails the test unless Helm refuses to install and to upgrade the chart
// with policies that the API server does not have, and leaves the release as it is.
func expectPoliciesRefused(t *testing.T) {
	t.Helper()
	want := `injection.mode is "policy" and the cluster is Kubernetes ` + apiserver.Version(t, server.config) +
		`, expected one that serves MutatingAdmissionPolicy (admissionregistration.k8s.io/v1), as 1.36 and newer do; use injection.mode=webhook`
	for _, command := range []string{"install another", "upgrade " + release} {
		t.Run("is refused by helm "+command, func(t *testing.T) {
			_, err := server.runHelm(t.Context(), append(strings.Fields(command), chartPath, "--set", "injection.mode=policy")...)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("found %v, expected a refusal with %s", err, want)
			}
		})
	}
	if _, err := server.runHelm(t.Context(), "upgrade", release, chartPath, "--dry-run=server"); err != nil {
		t.Errorf("found %v, expected that the release can be upgraded in the mode webhook", err)
	}
}

// startPolicyServer starts an API server with the chart installed so that it injects
// by policy, and with the InjectionTemplate that the operator would write.
func startPolicyServer(t *testing.T) client.Client {
	t.Helper()
	s, err := startServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	if err := s.install(t.Context(), "--set", "injection.mode=policy"); err != nil {
		t.Fatal(err)
	}
	admin, err := s.as("")
	if err != nil {
		t.Fatal(err)
	}
	parameters, err := injection.Parameters(policyTemplate(), "")
	if err != nil {
		t.Fatal(err)
	}
	create(t, admin, &v1alpha1.InjectionTemplate{ObjectMeta: metav1.ObjectMeta{Name: release}, Spec: parameters})
	eventually(t, "the policies", func(ctx context.Context) error {
		refused := plainPod("default", "await")
		refused.Annotations = map[string]string{contract.InjectAnnotation: "perhaps"}
		if err := admin.Create(ctx, refused, client.DryRunAll); err == nil || !strings.Contains(err.Error(), `found "perhaps"`) {
			return fmt.Errorf("found %w, expected a refusal", err)
		}
		pod := plainPod("default", "await")
		pod.Annotations = map[string]string{contract.InjectAnnotation: "true"}
		if err := admin.Create(ctx, pod, client.DryRunAll); err != nil {
			return err
		}
		if len(pod.Spec.InitContainers) == 0 {
			return errors.New("found a pod without a broker")
		}
		return nil
	})
	return admin
}

func readGoldenPod(t *testing.T, file string) *corev1.Pod {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(goldenPods, file))
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(data, pod); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return pod
}

// withoutSnapshot returns the pod as the policy makes it: without a snapshot, because a policy can't read the ConfigMap.
// docs/pods.md lists this difference, and no other.
func withoutSnapshot(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	delete(pod.Annotations, contract.ProfilesSnapshotAnnotation)
	for i := range pod.Spec.Volumes {
		if volume := &pod.Spec.Volumes[i]; volume.Name == contract.ProfilesVolume && volume.Projected != nil {
			files := volume.Projected.Sources[0].DownwardAPI
			files.Items = slices.DeleteFunc(files.Items, func(file corev1.DownwardAPIVolumeFile) bool { return file.Path != contract.LogLevelFile })
		}
	}
	return pod
}

// injectedParts returns everything that the injection adds to a pod.
type injectedParts struct {
	Place       int
	Broker      *corev1.Container
	Volumes     []corev1.Volume
	Mounts      map[string][]corev1.VolumeMount
	Variables   map[string][]corev1.EnvVar
	Groups      []int64
	PullSecrets []corev1.LocalObjectReference
	Annotations map[string]string
}

func injectionOf(pod *corev1.Pod) injectedParts {
	found := injectedParts{
		Mounts:      map[string][]corev1.VolumeMount{},
		Variables:   map[string][]corev1.EnvVar{},
		PullSecrets: pod.Spec.ImagePullSecrets,
		Annotations: pod.Annotations,
	}
	found.Place = slices.IndexFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == contract.BrokerContainer })
	if found.Place >= 0 {
		found.Broker = pod.Spec.InitContainers[found.Place].DeepCopy()
		// The API server adds a default value, and a mount to every container.
		found.Broker.ResizePolicy = nil
		found.Broker.VolumeMounts = slices.DeleteFunc(found.Broker.VolumeMounts, func(mount corev1.VolumeMount) bool {
			return !strings.HasPrefix(mount.Name, contract.BrokerContainer)
		})
	}
	for _, volume := range pod.Spec.Volumes {
		if strings.HasPrefix(volume.Name, contract.BrokerContainer) {
			found.Volumes = append(found.Volumes, volume)
		}
	}
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, mount := range container.VolumeMounts {
			if strings.HasPrefix(mount.Name, contract.BrokerContainer) {
				found.Mounts[container.Name] = append(found.Mounts[container.Name], mount)
			}
		}
		if len(container.Env) > 0 {
			found.Variables[container.Name] = container.Env
		}
	}
	delete(found.Mounts, contract.BrokerContainer)
	if pod.Spec.SecurityContext != nil {
		found.Groups = pod.Spec.SecurityContext.SupplementalGroups
	}
	return found
}

func policyMakesGoldenPods(t *testing.T, admin client.Client) {
	files, err := filepath.Glob(goldenPods + "/*.golden.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("found no golden pods")
	}
	for _, file := range files {
		if sentence := strings.TrimSuffix(filepath.Base(file), ".golden.yaml"); !strings.HasPrefix(sentence, exportingSpans) && sentence != sendingRecords && !strings.HasPrefix(sentence, besideKeyGateway) {
			t.Run(sentence, func(t *testing.T) { expectGoldenPod(t, admin, sentence) })
		}
	}
}

// expectGoldenPod compares the pod from the policy with the pod from the webhook.
func expectGoldenPod(t *testing.T, admin client.Client, sentence string) {
	t.Helper()
	pod, want := withoutSnapshot(readGoldenPod(t, sentence+".yaml")), withoutSnapshot(readGoldenPod(t, sentence+".golden.yaml"))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Annotations: map[string]string{}}}
	if pod.Annotations[contract.InjectAnnotation] == "" {
		namespace.Labels = map[string]string{contract.InjectionLabel: contract.InjectionEnabled}
	}
	if strings.HasSuffix(sentence, "pod-of-a-namespace-that-assigns-user-ids") {
		namespace.Annotations["openshift.io/sa.scc.uid-range"] = "1000700000/10000"
	}
	create(t, admin, namespace)
	if sentence == "a-mirror-pod" {
		// Only a kubelet may create a mirror pod, and its node has to exist.
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "node-1", UID: "1", Controller: ptr.To(true)}}
	}

	submit := func(pod *corev1.Pod) *corev1.Pod {
		t.Helper()
		pod = pod.DeepCopy()
		pod.Namespace, pod.ResourceVersion, pod.UID, pod.ManagedFields = namespace.Name, "", "", nil
		if err := admin.Create(t.Context(), pod, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		return pod
	}
	once := submit(pod)
	if diff := cmp.Diff(injectionOf(want), injectionOf(once), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the policy makes another pod than the webhook (-webhook +policy):\n%s", diff)
	}
	if sentence == "a-mirror-pod" {
		return // warnings, which this client ignores
	}
	if diff := cmp.Diff(once.Spec, submit(once).Spec); diff != "" {
		t.Errorf("a second pass changes the pod (-once +twice):\n%s", diff)
	}
}

func policyTellsBrokersWhomToTrustAndWhere(t *testing.T, admin client.Client) {
	template := policyTemplate()
	template.Seal.Keys = []ed25519.PublicKey{ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public().(ed25519.PublicKey)}
	setTemplate(t, admin, template, "cluster-uid")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, admin, namespace)
	want := []string{
		"--profiles-dir=/etc/crypto-broker/profiles",
		"--socket-dir=/run/broker",
		"--trusted-keys=" + signed.FormatKey(template.Seal.Keys[0]),
		"--state-dir=/run/broker/.served",
		"--callers=app",
		"--socket-group=60471",
		"--profiles-audience=cluster-uid/" + namespace.Name + "/" + string(namespace.UID),
		"--status-address=:9470",
		"--log-level=info",
	}
	eventually(t, "the policy with the new template", func(ctx context.Context) error {
		pod := plainPod(namespace.Name, "pod")
		pod.Annotations = map[string]string{contract.InjectAnnotation: "true"}
		if err := admin.Create(ctx, pod, client.DryRunAll); err != nil {
			return err
		}
		if diff := cmp.Diff(want, pod.Spec.InitContainers[0].Args); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}
