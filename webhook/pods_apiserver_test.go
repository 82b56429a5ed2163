// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package webhook

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// The test creates each golden pod as its owner would. The created pod has the broker of the golden pod. Even with the API server's
// defaults, another call of the webhook does not change it.
func TestTheAPIServerMakesTheGoldenPods(t *testing.T) {
	operator := startOperator(t)
	current := template.Template{}
	for _, golden := range fixture.GoldenPods(t, testdata) {
		var template template.Template
		golden.ReadTemplate(t, &template)
		if template.BrokerCertificates {
			continue // the policies in config do not know the certificates of the key gateway
		}
		if template.Traces != current.Traces || template.Audit != current.Audit || template.KeyGateway != current.KeyGateway {
			operator.stop()
			operator, current = startOperatorWith(t, Options{Template: template}), template
		}
		t.Run(golden.Sentence, func(t *testing.T) {
			if golden.Pod.Annotations[corev1.MirrorPodAnnotationKey] != "" {
				// Only a kubelet may create a mirror pod, and its node has to exist.
				golden.Pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "node-1", UID: "1", Controller: ptr.To(true)}}
			}
			labels := map[string]string{}
			if golden.Pod.Annotations[contract.InjectAnnotation] == "" {
				labels = fixture.Enabled
			}
			namespace := newNamespace(t, labels, golden.NamespaceAnnotations)
			_, template.NamespaceUserIDs = golden.NamespaceAnnotations[userRangeAnnotation]
			if golden.Profiles != nil {
				configMap := fixture.ProfilesIn(namespace)
				configMap.Data["Profiles.yaml"] = string(golden.Profiles)
				if err := admin.Create(t.Context(), configMap); err != nil {
					t.Fatal(err)
				}
			}

			pod := golden.Pod.DeepCopy()
			pod.Namespace = namespace
			if err := admin.Create(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			want := fixture.ReadPod(t, golden.File())
			wanted, found := brokerOf(want), brokerOf(pod)
			if golden.Pod.Spec.Resources != nil && pod.Spec.Resources == nil {
				// Kubernetes 1.30 drops spec.resources, so the webhook gives the broker resources of its own.
				if len(found.Container.Resources.Requests) == 0 {
					t.Error("found a broker without requests in a pod without spec.resources, expected its own")
				}
				wanted.Container.Resources = found.Container.Resources
			}
			if diff := cmp.Diff(wanted, found, ignoringDefaults); diff != "" {
				t.Errorf("another broker than the golden one (-want +found):\n%s", diff)
			}
			if diff := cmp.Diff(want.Annotations, pod.Annotations); diff != "" {
				t.Errorf("other annotations than the golden ones (-want +found):\n%s", diff)
			}
			again, _, err := injection.Inject(pod, namespace, golden.Profiles, template)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(pod, again); diff != "" {
				t.Errorf("a further call changes the pod (-found +made):\n%s", diff)
			}
			// Zero grace: there is no kubelet to confirm.
			if err := admin.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAGuaranteedPodStaysGuaranteed(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t, nil, nil)
	pod, err := tryPod(t, namespace, fixture.PodWith(func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources = fixture.Sized("1", "1Gi", "1", "1Gi") }))
	if err != nil {
		t.Fatal(err)
	}
	if pod.Status.QOSClass != corev1.PodQOSGuaranteed {
		t.Errorf("found the class %s, expected %s", pod.Status.QOSClass, corev1.PodQOSGuaranteed)
	}
}

// broker is what injection.Inject adds to a pod.
type broker struct {
	Place     int
	Container *corev1.Container
	Volumes   []corev1.Volume
	Mounts    map[string][]corev1.VolumeMount
	Variables map[string][]corev1.EnvVar
	Groups    []int64
	Secrets   []corev1.LocalObjectReference
}

func brokerOf(pod *corev1.Pod) broker {
	found := broker{Place: slices.IndexFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == contract.BrokerContainer }), Mounts: map[string][]corev1.VolumeMount{},
		Variables: map[string][]corev1.EnvVar{}, Secrets: pod.Spec.ImagePullSecrets}
	if found.Place >= 0 {
		found.Container = &pod.Spec.InitContainers[found.Place]
	}
	for _, volume := range pod.Spec.Volumes {
		if contract.IsReservedVolume(volume.Name) {
			found.Volumes = append(found.Volumes, volume)
		}
	}
	fixture.Each(pod, func(_ string, container *corev1.Container) {
		for _, mount := range container.VolumeMounts {
			if contract.IsReservedVolume(mount.Name) {
				found.Mounts[container.Name] = append(found.Mounts[container.Name], mount)
			}
		}
		found.Variables[container.Name] = container.Env
	})
	if pod.Spec.SecurityContext != nil {
		found.Groups = pod.Spec.SecurityContext.SupplementalGroups
	}
	return found
}

// ignoringDefaults ignores the fields that the API server adds to every container.
var ignoringDefaults = cmp.FilterPath(func(path cmp.Path) bool {
	return path.Last().String() == ".ResizePolicy"
}, cmp.Ignore())

func TestTheAPIServerTellsWhyAPodIsRefused(t *testing.T) {
	startOperator(t)
	tests := map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"True": {
			pod: fixture.PodWith(fixture.Asking("True")),
			want: `admission webhook "annotated.inject.cryptobroker.io" denied the request: ` +
				`metadata.annotations[cryptobroker.io/inject]: found "True", expected "true" to get a broker or "false" to get none`,
		},
		"a reserved name": {
			pod: fixture.PodWith(func(pod *corev1.Pod) { pod.Spec.Containers[0].Name = "crypto-broker" }),
			want: `admission webhook "annotated.inject.cryptobroker.io" denied the request: ` +
				`spec.containers[0].name: found "crypto-broker", expected another name; ` + reserved,
		},
	}
	namespace := newNamespace(t, nil, nil)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := tryPod(t, namespace, test.pod); err == nil || err.Error() != test.want {
				t.Errorf("answered %v, expected %s", err, test.want)
			}
		})
	}
}

func TestWithTheOperatorDownOnlyPodsThatMayGetABrokerAreRefused(t *testing.T) {
	startOperator(t).stop()
	plain, labelled := newNamespace(t, nil, nil), newNamespace(t, fixture.Enabled, nil)
	annotated := func(annotations map[string]string) *corev1.Pod {
		return fixture.PodWith(func(pod *corev1.Pod) { pod.Annotations = annotations })
	}
	tests := map[string]struct {
		namespace string
		pod       *corev1.Pod
		refused   bool
	}{
		"no annotations":              {namespace: plain, pod: annotated(nil)},
		"an empty map of annotations": {namespace: plain, pod: annotated(map[string]string{})},
		"other annotations":           {namespace: plain, pod: annotated(map[string]string{"example.com/a": "b"})},
		"one that declines":           {namespace: plain, pod: fixture.PodWith(fixture.Asking("false"))},
		"true":                        {namespace: plain, pod: fixture.PodWith(fixture.Asking("true")), refused: true},
		"True":                        {namespace: plain, pod: fixture.PodWith(fixture.Asking("True")), refused: true},
		"yes":                         {namespace: plain, pod: fixture.PodWith(fixture.Asking("yes")), refused: true},
		"one of a labelled namespace": {namespace: labelled, pod: annotated(nil), refused: true},
		"one of a labelled namespace that declines": {namespace: labelled, pod: fixture.PodWith(fixture.Asking("false"))},
		"one of a labelled namespace for Windows":   {namespace: labelled, pod: fixture.ReadPod(t, testdata+"/pods/a-windows-pod.yaml")},
		"one of the operator's namespace that asks": {namespace: operatorNamespace, pod: fixture.ReadPod(t, testdata+"/pods/a-plain-pod.yaml")},
		"one of the system's namespace that asks":   {namespace: "kube-system", pod: fixture.PodWith(fixture.Asking("true"))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := tryPod(t, test.namespace, test.pod)
			switch {
			case test.refused && (err == nil || !strings.Contains(err.Error(), "failed calling webhook")):
				t.Errorf("answered %v, expected a refusal because the webhook can't be called", err)
			case !test.refused && err != nil:
				t.Errorf("refused: %v", err)
			}
		})
	}
}

// Another injector is called after the operator's. It adds a sidecar at the front and a variable to every container. Then the
// operator's webhook is called again.
func TestAnotherInjectorInBetween(t *testing.T) {
	startOperator(t)
	namespace := startOtherInjector(t, "proxy", `[{"op": "add", "path": "/spec/initContainers/0", "value": {"name": "proxy", "image": "example.com/proxy:1", "restartPolicy": "Always"}},
		{"op": "add", "path": "/spec/initContainers/1/env", "value": [{"name": "MESH", "value": "on"}]},
		{"op": "add", "path": "/spec/containers/0/env", "value": [{"name": "MESH", "value": "on"}]}]`)
	before := count(t, resultInjected)
	var pod *corev1.Pod
	eventually(t, "the other injector is called", func() (err error) {
		before = count(t, resultInjected)
		if pod, err = tryPod(t, namespace, fixture.PodWith()); err == nil && pod.Spec.InitContainers[0].Name != "proxy" {
			err = errNotCalled
		}
		return err
	})
	if calls := count(t, resultInjected) - before; calls != 2 {
		t.Errorf("the pod was injected %v times, expected twice: once more after the other injector", calls)
	}
	if pod.Spec.InitContainers[1].Name != "crypto-broker" || len(pod.Spec.InitContainers) != 2 {
		t.Errorf("found the init containers %v, expected proxy and crypto-broker", pod.Spec.InitContainers)
	}
	if args := pod.Spec.InitContainers[1].Args; !slices.Contains(args, "--callers=app") {
		t.Errorf("the broker has the arguments %q, expected only the app as a caller", args)
	}
	if mounts := pod.Spec.InitContainers[0].VolumeMounts; len(mounts) > 0 {
		t.Errorf("the proxy mounts %v, expected nothing", mounts)
	}
}
