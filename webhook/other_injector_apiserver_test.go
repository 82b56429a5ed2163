// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// startOtherInjector serves a webhook that is called after the operator's. It applies operations to pods that have no container of
// a name yet. It returns a namespace for whose pods it is called.
func startOtherInjector(t *testing.T, container, operations string) (namespace string) {
	t.Helper()
	isThere := func(c corev1.Container) bool { return c.Name == container }
	return serveOtherInjector(t, container, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := admissionv1.AdmissionReview{}
		pod := &corev1.Pod{}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &review)
		}
		if err == nil {
			err = json.Unmarshal(review.Request.Object.Raw, pod)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if !slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), isThere) {
			review.Response.Patch, review.Response.PatchType = []byte(operations), ptr.To(admissionv1.PatchTypeJSONPatch)
		}
		if err := json.NewEncoder(w).Encode(review); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
}

// serveOtherInjector serves a webhook that is called after the operator's. It returns a namespace for whose pods it is called.
func serveOtherInjector(t *testing.T, name string, handler http.Handler) (namespace string) {
	t.Helper()
	other := httptest.NewTLSServer(handler)
	t.Cleanup(other.Close)
	label := map[string]string{"other-injector": name}
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{GenerateName: "other-injector-"}}
	configuration.Webhooks = []admissionregistrationv1.MutatingWebhook{{
		Name: "other.example.com",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			URL: ptr.To(other.URL), CABundle: pemOf(other.Certificate()),
		},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: label},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		}},
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
		ReinvocationPolicy:      ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
	}}
	if err := admin.Create(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the test's own context has ended by then
		if err := admin.Delete(context.Background(), configuration); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	return newNamespace(t, label, nil)
}

// In a rolling upgrade, one replica may answer the first call for a pod, and a replica of another version the second call. Here the
// API server calls each of the two twice.
func TestAPodThatReplicasOfTwoVersionsSeeGetsTheBrokerOfTheLast(t *testing.T) {
	startOperator(t)
	var calls atomic.Int32
	options := Options{Template: otherTemplate(), OperatorNamespace: operatorNamespace}
	replica := &admission.Webhook{Handler: newPodInjector(admission.NewDecoder(apiServerScheme()), admin, admin, options)}
	namespace := serveOtherInjector(t, "other-version", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		replica.ServeHTTP(w, r)
	}))
	if err := admin.Create(t.Context(), fixture.ProfilesIn(namespace)); err != nil {
		t.Fatal(err)
	}
	for _, golden := range []string{"a-plain-pod", "a-job-with-init-containers-and-a-sidecar", "a-pod-that-sizes-its-broker"} {
		asked := fixture.ReadPod(t, testdata+"/pods/"+golden+".yaml")
		want := admitted(t, asked, []byte(fixture.ProfilesOfShop), otherTemplate())
		var pod *corev1.Pod
		eventually(t, "both are called", func() (err error) {
			before := calls.Load()
			pod, err = tryPod(t, namespace, asked)
			if err != nil {
				t.Fatalf("%s: %v", golden, err)
			}
			if calls.Load() != before+2 {
				err = fmt.Errorf("the other version was called %d times", calls.Load()-before)
			}
			return err
		})
		if diff := cmp.Diff(brokerOf(fixture.InNewPod(want)), brokerOf(fixture.InNewPod(pod)), ignoringDefaults); diff != "" {
			t.Errorf("%s: another broker than the replica makes that is called last (-want +found):\n%s", golden, diff)
		}
	}
}

func TestAContainerThatAnotherInjectorAddsLaterGetsASocketIfItIsNamed(t *testing.T) {
	startOperator(t)
	namespace := startOtherInjector(t, "agent", `[{"op": "add", "path": "/spec/containers/0", "value": {"name": "agent", "image": "example.com/agent:1"}}]`)
	var pod *corev1.Pod
	eventually(t, "the other injector is called", func() (err error) {
		pod, err = tryPod(t, namespace, fixture.PodWith())
		if err == nil && pod.Spec.Containers[0].Name != "agent" {
			err = errNotCalled
		}
		return err
	})
	if mounts := fixture.SocketMounts(pod.Spec.Containers[0]); len(mounts) > 0 {
		t.Errorf("an agent that is not named mounts %v, expected nothing", mounts)
	}

	pod, err := tryPod(t, namespace, fixture.PodWith(fixture.Annotated("containers", "app,agent"), fixture.Annotated("profiles.agent", "Default")))
	if err != nil {
		t.Fatal(err)
	}
	for _, container := range pod.Spec.Containers {
		if mounts := fixture.SocketMounts(container); len(mounts) != 1 || mounts[0].SubPath != container.Name {
			t.Errorf("the container %s mounts %v, expected its socket", container.Name, mounts)
		}
	}
	for _, want := range []string{"--callers=app,agent", "--caller-profiles=agent=Default"} {
		if args := pod.Spec.InitContainers[0].Args; !slices.Contains(args, want) {
			t.Errorf("the broker has the arguments %q, expected %s among them", args, want)
		}
	}
}

func TestANamedContainerThatNobodyAddsRefusesThePodInTheEnd(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t, nil, nil)
	const want = `metadata.annotations[cryptobroker.io/containers]: found "app, agnet ,web", expected names of containers of the pod, which are app; it has no "agnet", "web"`
	eventually(t, "the policy refuses", func() error {
		_, err := tryPod(t, namespace, fixture.PodWith(fixture.Annotated("containers", "app, agnet ,web"), fixture.Annotated("profiles.agnet", "Default")))
		if err == nil {
			return errNotCalled
		}
		if !strings.Contains(err.Error(), want) {
			t.Fatalf("found %v, expected %s", err, want)
		}
		return nil
	})
	for sentence, pod := range map[string]*corev1.Pod{
		"one that names its own":                 fixture.PodWith(fixture.Annotated("containers", "app")),
		"one that declines":                      fixture.PodWith(fixture.Asking("false"), fixture.Annotated("containers", "agnet")),
		"one that names nothing":                 fixture.PodWith(),
		"one that asks for nothing, in any case": fixture.PodWith(func(pod *corev1.Pod) { pod.Annotations = map[string]string{"cryptobroker.io/containers": "agnet"} }),
	} {
		if _, err := tryPod(t, namespace, pod); err != nil {
			t.Errorf("%s: %v, expected no refusal", sentence, err)
		}
	}
}

// The API server does not call the operator for a pod that does not ask. So this pod is like a pod whose container comes after the
// operator's last call.
func TestANamedContainerThatComesTooLateForItsSocketRefusesThePod(t *testing.T) {
	const want = `metadata.annotations[cryptobroker.io/containers]: found "app, agent", but no socket in "agent"; expected only names of containers that are there`
	namespace := newNamespace(t, nil, nil)
	pod := func() *corev1.Pod {
		pod := fixture.PodWith(fixture.Second(corev1.Container{Name: "agent", Image: "example.com/agent:1"}))
		pod.Annotations = map[string]string{contract.ContainersAnnotation: "app, agent"}
		pod.Spec.InitContainers = []corev1.Container{{Name: contract.BrokerContainer, Image: "example.com/broker:1"}}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: contract.SocketVolume})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: contract.SocketVolume, MountPath: contract.SocketDir})
		return pod
	}
	eventually(t, "the policy refuses", func() error {
		_, err := tryPod(t, namespace, pod())
		if err == nil {
			return errNotCalled
		}
		if !strings.Contains(err.Error(), want) {
			t.Fatalf("found %v, expected %s", err, want)
		}
		return nil
	})
	served := pod()
	served.Spec.Containers[1].VolumeMounts = served.Spec.Containers[0].VolumeMounts
	if _, err := tryPod(t, namespace, served); err != nil {
		t.Errorf("with a socket in each: %v, expected no refusal", err)
	}
	for sentence, test := range map[string]struct {
		namespace string
		change    func(*corev1.Pod)
	}{
		"one that declines":                {namespace, fixture.Asking("false")},
		"one of a namespace of the system": {metav1.NamespaceSystem, func(*corev1.Pod) {}},
		"one of the namespace of nodes":    {corev1.NamespaceNodeLease, func(*corev1.Pod) {}},
		"one of the operator's own namespace": {operatorNamespace, func(pod *corev1.Pod) {
			pod.Spec.SecurityContext = &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			}
			fixture.Each(pod, func(_ string, container *corev1.Container) {
				container.SecurityContext = &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				}
			})
		}},
		"one that a kubelet has started itself": {namespace, func(pod *corev1.Pod) {
			pod.Annotations[corev1.MirrorPodAnnotationKey] = "5b0d"
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "node-1", UID: "1", Controller: ptr.To(true)}}
			pod.Spec.NodeName = "node-1"
		}},
	} {
		other := pod()
		test.change(other)
		if _, err := tryPod(t, test.namespace, other); err != nil {
			t.Errorf("%s, with containers of its own by these names: %v, expected no refusal", sentence, err)
		}
	}
}
