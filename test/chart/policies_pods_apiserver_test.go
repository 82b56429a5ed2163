// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package chart

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

func TestTheOperatorMayChangeOneAnnotationOfAPodAndRemoveItsSnapshot(t *testing.T) {
	const digest = `"cryptobroker.io/profiles-digest":"sha256:0.1"`
	status := func(t *testing.T, pod *corev1.Pod, patch client.Patch) error {
		return operator(t).SubResource("status").Patch(t.Context(), pod, patch, client.FieldValidation(metav1.FieldValidationIgnore))
	}
	tests := map[string]struct {
		patch   string
		refusal string
	}{
		"the digest annotation is set":     {patch: `{"metadata":{"annotations":{` + digest + `}}}`},
		"the digest annotation is changed": {patch: `{"metadata":{"annotations":{"cryptobroker.io/profiles-digest":"sha256:1.2"}}}`},
		"the digest annotation is removed": {patch: `{"metadata":{"annotations":{"cryptobroker.io/profiles-digest":null}}}`},
		"the snapshot is removed": {
			patch: `{"metadata":{"annotations":{` + digest + `,"cryptobroker.io/profiles-snapshot":null,"cryptobroker.io/profiles-snapshot-signature":null}}}`,
		},
		// Two policies refuse this for a pod with a broker, and either message may come.
		"the snapshot is another": {
			patch:   `{"metadata":{"annotations":{` + digest + `,"cryptobroker.io/profiles-snapshot":"- Name: Weak\n"}}}`,
			refusal: "annotation",
		},
		"nothing is changed":              {patch: `{}`},
		"a change of the spec is dropped": {patch: `{"spec":{"containers":[{"name":"app","image":"example.com/other:1"}]}}`},
		"another annotation is added": {
			patch:   `{"metadata":{"annotations":{` + digest + `,"a":"b"}}}`,
			refusal: "found a change of another annotation",
		},
		"another annotation is changed": {
			patch:   `{"metadata":{"annotations":{"kept":"no"}}}`,
			refusal: "found a change of another annotation",
		},
		"another annotation is removed": {
			patch:   `{"metadata":{"annotations":{` + digest + `,"kept":null}}}`,
			refusal: "found a change of another annotation",
		},
		// Two policies refuse this for a pod with a broker, and either message may come.
		"all annotations are removed": {
			patch:   `{"metadata":{"annotations":null}}`,
			refusal: "annotation",
		},
		"a label is added": {
			patch:   `{"metadata":{"annotations":{` + digest + `},"labels":{"a":"b"}}}`,
			refusal: "found a change of the pod's labels, finalizers or owner references",
		},
		"a finalizer is added": {
			patch:   `{"metadata":{"finalizers":["example.com/a"]}}`,
			refusal: "found a change of the pod's labels, finalizers or owner references",
		},
		"the phase is changed": {
			patch:   `{"metadata":{"annotations":{` + digest + `}},"status":{"phase":"Failed"}}`,
			refusal: "found a change of the pod's spec or status",
		},
		"a condition is changed": {
			patch:   `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`,
			refusal: "found a change of the pod's spec or status",
		},
		"the pod gets another address": {
			patch:   `{"status":{"podIP":"192.0.2.7","podIPs":[{"ip":"192.0.2.7"},{"ip":"2001:db8::1"}]}}`,
			refusal: "found a change of the pod's spec or status",
		},
	}
	// The operator writes strategic merge patches. It could write the others as well.
	patches := map[string]func(string) client.Patch{"by a strategic merge patch": strategicPatch, "by a merge patch": mergePatch}
	kinds := map[string]func(namespace, name string) *corev1.Pod{
		"of a pod with a broker":  brokerPod,
		"of a plain pod":          plainPod,
		"of a pod with a status":  podWithStatus,
		"of a pod with finalizer": podWithFinalizer,
	}
	for kind, newPod := range kinds {
		t.Run(kind, func(t *testing.T) {
			namespace := namespaceFor(t, nil)
			run := func(t *testing.T, patch client.Patch, refusal string) {
				pod := newPod(namespace, "")
				pod.GenerateName = "pod-"
				if pod.Annotations == nil {
					pod.Annotations = map[string]string{}
				}
				pod.Annotations["kept"] = "yes"
				wanted := pod.Status.DeepCopy()
				create(t, clusterAdmin(t), pod)
				pod.Status = *wanted
				if err := clusterAdmin(t).Status().Update(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
				verdict(t, status(t, pod.DeepCopy(), patch), refusal)

				after := &corev1.Pod{}
				if err := clusterAdmin(t).Get(t.Context(), client.ObjectKeyFromObject(pod), after); err != nil {
					t.Fatal(err)
				}
				if got, want := after.Spec.Containers[0].Image, pod.Spec.Containers[0].Image; got != want {
					t.Errorf("found the image %q, expected %q as before", got, want)
				}
			}
			for name, test := range tests {
				for how, patch := range patches {
					t.Run(name+" "+how, func(t *testing.T) { run(t, patch(test.patch), test.refusal) })
				}
			}
		})
	}

	t.Run("it has no right to the pod itself", func(t *testing.T) {
		namespace := namespaceFor(t, nil)
		pod := brokerPod(namespace, "pod")
		create(t, clusterAdmin(t), pod)
		verdict(t, operator(t).Patch(t.Context(), pod, mergePatch(`{"metadata":{"annotations":{`+digest+`}}}`)), `cannot patch resource "pods"`)
		verdict(t, operator(t).Delete(t.Context(), pod), `cannot delete resource "pods"`)
	})

	t.Run("a right to the pod itself, given by mistake, is of no use to it", func(t *testing.T) {
		namespace := namespaceFor(t, nil)
		pod := plainPod(namespace, "pod")
		create(t, clusterAdmin(t), pod)
		create(t, clusterAdmin(t), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "operator-is-admin"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: releaseNamespace, Name: release}},
		})
		eventually(t, "the policy refuses", func(ctx context.Context) error {
			err := operator(t).Patch(ctx, pod.DeepCopy(), mergePatch(`{"metadata":{"labels":{"a":"b"}}}`))
			if err == nil || !strings.Contains(err.Error(), "may change pods only through their status") {
				return fmt.Errorf("found %w, expected the policy's refusal", err)
			}
			return nil
		})
	})
}

// podWithStatus returns a pod with the status that a kubelet writes.
func podWithStatus(namespace, name string) *corev1.Pod {
	pod := brokerPod(namespace, name)
	pod.Status = corev1.PodStatus{
		Phase:      corev1.PodRunning,
		PodIP:      "192.0.2.7",
		PodIPs:     []corev1.PodIP{{IP: "192.0.2.7"}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "app", Image: "example.com/app:1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}},
	}
	return pod
}

func podWithFinalizer(namespace, name string) *corev1.Pod {
	pod := plainPod(namespace, name)
	pod.Finalizers = []string{"example.com/kept"}
	return pod
}

// debuggingAdmin is a namespaceAdmin who may also add ephemeral containers. The ClusterRole admin does not have that right.
func debuggingAdmin(t *testing.T, namespace string) client.Client {
	t.Helper()
	const name = "debug-pods"
	c := namespaceAdmin(t, namespace)
	create(t, clusterAdmin(t), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/ephemeralcontainers"}, Verbs: []string{"get", "patch", "update"}}},
	})
	create(t, clusterAdmin(t), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "admin-of-" + namespace}},
	})
	eventually(t, "the right to debug pods", func(ctx context.Context) error {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Resource: "pods", Subresource: "ephemeralcontainers", Verb: "update"},
		}}
		if err := c.Create(ctx, review); err != nil {
			return err
		}
		if !review.Status.Allowed {
			return fmt.Errorf("found %+v, expected the request to be allowed", review.Status)
		}
		return nil
	})
	return c
}

func TestAPodKeepsTheBrokerItWasAdmittedWith(t *testing.T) {
	patch := func(document string) func(*testing.T, client.Client, *corev1.Pod) error {
		return func(t *testing.T, c client.Client, pod *corev1.Pod) error {
			return c.Patch(t.Context(), pod, strategicPatch(document))
		}
	}
	patchStatus := func(document string) func(*testing.T, client.Client, *corev1.Pod) error {
		return func(t *testing.T, c client.Client, pod *corev1.Pod) error {
			return c.SubResource("status").Patch(t.Context(), pod, strategicPatch(document))
		}
	}
	debug := func(change func(*corev1.EphemeralContainer)) func(*testing.T, client.Client, *corev1.Pod) error {
		return func(t *testing.T, c client.Client, pod *corev1.Pod) error {
			pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, ephemeral("debug", change))
			return c.SubResource("ephemeralcontainers").Update(t.Context(), pod)
		}
	}
	mount := func(volume string) func(*corev1.EphemeralContainer) {
		return func(container *corev1.EphemeralContainer) {
			container.VolumeMounts = []corev1.VolumeMount{{Name: volume, MountPath: "/here"}}
		}
	}
	target := func(name string) func(*corev1.EphemeralContainer) {
		return func(container *corev1.EphemeralContainer) { container.TargetContainerName = name }
	}
	tests := map[string]struct {
		newPod  func(namespace, name string) *corev1.Pod
		call    func(*testing.T, client.Client, *corev1.Pod) error
		status  bool // this call also writes the status
		refusal string
	}{
		"the broker's image": {
			call:    patch(`{"spec":{"initContainers":[{"name":"crypto-broker","image":"example.com/evil:1"}]}}`),
			refusal: "the image of the container crypto-broker stays as it was admitted",
		},
		"the app's image": {
			call: patch(`{"spec":{"containers":[{"name":"app","image":"example.com/app:2"}]}}`),
		},
		"the image of another init container": {
			call: patch(`{"spec":{"initContainers":[{"name":"migrate","image":"example.com/migrate:2"}]}}`),
		},
		"a label": {
			call: patch(`{"metadata":{"labels":{"a":"b"}}}`),
		},
		"an annotation": {
			call: patch(`{"metadata":{"annotations":{"a":"b"}}}`),
		},
		"the annotation that asks for injection": {
			call: patch(`{"metadata":{"annotations":{"cryptobroker.io/inject":"false"}}}`),
		},
		"the stamp": {
			call:    patch(`{"metadata":{"annotations":{"cryptobroker.io/injected":"0.1.0/other"}}}`),
			refusal: "cryptobroker.io/profiles-snapshot-signature stay as they were when the pod was admitted",
		},
		"the stamp, by removing it": {
			call:    patch(`{"metadata":{"annotations":{"cryptobroker.io/injected":null}}}`),
			refusal: "cryptobroker.io/profiles-snapshot-signature stay as they were when the pod was admitted",
		},
		"all annotations, by removing them": {
			call:    patch(`{"metadata":{"annotations":null}}`),
			refusal: "cryptobroker.io/profiles-snapshot-signature stay as they were when the pod was admitted",
		},
		"the snapshot": {
			call:    patch(`{"metadata":{"annotations":{"cryptobroker.io/profiles-snapshot":"- Name: Weak\n"}}}`),
			refusal: "cryptobroker.io/profiles-snapshot-signature stay as they were when the pod was admitted",
		},
		"the snapshot, by removing it": {
			call:    patch(`{"metadata":{"annotations":{"cryptobroker.io/profiles-snapshot":null}}}`),
			refusal: "cryptobroker.io/profiles-snapshot-signature stay as they were when the pod was admitted",
		},
		"the snapshot, through the status": {
			call:    patchStatus(`{"metadata":{"annotations":{"cryptobroker.io/profiles-snapshot":"- Name: Weak\n"}}}`),
			status:  true,
			refusal: "cryptobroker.io/profiles-snapshot-signature stay as they were when the pod was admitted",
		},
		"a snapshot where there was none": {
			newPod: func(namespace, name string) *corev1.Pod {
				pod := brokerPod(namespace, name)
				delete(pod.Annotations, contract.ProfilesSnapshotAnnotation)
				return pod
			},
			call:    patch(`{"metadata":{"annotations":{"cryptobroker.io/profiles-snapshot":"- Name: Weak\n"}}}`),
			refusal: "cryptobroker.io/profiles-snapshot-signature stay as they were when the pod was admitted",
		},
		"the digest": {
			call:    patch(`{"metadata":{"annotations":{"cryptobroker.io/profiles-digest":"sha256:0.9"}}}`),
			refusal: "only the Crypto Broker Operator may write the annotation cryptobroker.io/profiles-digest",
		},
		"the digest, through the status": {
			call:    patchStatus(`{"metadata":{"annotations":{"cryptobroker.io/profiles-digest":"sha256:0.9"}}}`),
			status:  true,
			refusal: "only the Crypto Broker Operator may write the annotation cryptobroker.io/profiles-digest",
		},
		"the status, as a kubelet does": {
			call:   patchStatus(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`),
			status: true,
		},
		"its debug container": {
			call: debug(nil),
		},
		"its debug container, beside the app's processes": {
			call: debug(target("app")),
		},
		"its debug container, which mounts another volume": {
			newPod: func(namespace, name string) *corev1.Pod {
				pod := brokerPod(namespace, name)
				pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
					Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
				})
				return pod
			},
			call: debug(mount("work")),
		},
		"its debug container, beside the broker's processes": {
			call:    debug(target(contract.BrokerContainer)),
			refusal: "an ephemeral container may not share the processes of the container crypto-broker",
		},
		"its debug container, which mounts the sockets": {
			call:    debug(mount(contract.SocketVolume)),
			refusal: "an ephemeral container may not mount the volumes that begin with crypto-broker-",
		},
		"its debug container, which mounts the profiles": {
			call:    debug(mount(contract.ProfilesVolume)),
			refusal: "an ephemeral container may not mount the volumes that begin with crypto-broker-",
		},
		"its debug container, which mounts another volume of the broker's": {
			newPod: func(namespace, name string) *corev1.Pod {
				pod := brokerPod(namespace, name)
				pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
					Name: "crypto-broker-keys", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
				})
				return pod
			},
			call:    debug(mount("crypto-broker-keys")),
			refusal: "an ephemeral container may not mount the volumes that begin with crypto-broker-",
		},
		"the signature of the snapshot": {
			call:    patch(`{"metadata":{"annotations":{"cryptobroker.io/profiles-snapshot-signature":"{}"}}}`),
			refusal: "cryptobroker.io/profiles-snapshot-signature stay as they were when the pod was admitted",
		},
		"a plain pod's everything": {
			newPod: plainPod,
			call: patch(`{"metadata":{"annotations":{"cryptobroker.io/injected":"a","cryptobroker.io/profiles-digest":"b"}},` +
				`"spec":{"containers":[{"name":"app","image":"example.com/app:2"}]}}`),
		},
		"a plain pod's debug container": {
			newPod: plainPod,
			call:   debug(nil),
		},
	}
	type user struct {
		client    client.Client
		namespace string
		// status reports whether the user may write the status of pods.
		status bool
	}
	shop := namespaceFor(t, nil)
	for who, user := range map[string]user{
		"by who administers the namespace":                  {client: debuggingAdmin(t, shop), namespace: shop},
		"with every right, for a policy knows no exception": {client: clusterAdmin(t), namespace: namespaceFor(t, nil), status: true},
	} {
		for name, test := range tests {
			t.Run(name+", "+who, func(t *testing.T) {
				newPod := test.newPod
				if newPod == nil {
					newPod = brokerPod
				}
				pod := newPod(user.namespace, "")
				pod.GenerateName = "pod-"
				create(t, clusterAdmin(t), pod)
				refusal := test.refusal
				if test.status && !user.status {
					refusal = `cannot patch resource "pods/status"`
				}
				verdict(t, test.call(t, user.client, pod), refusal)
			})
		}
	}
}
