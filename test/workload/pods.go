// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// AppUser is the user of the demo application. It differs from the user of the broker's image.
const AppUser = 12345

// StatsPort is the port on which the demo application answers GET /stats.
const StatsPort = 8080

// Load are options of the demo application with which it calls about 180 times a second.
var Load = map[string]string{"WORKERS": "2", "INTERVAL": "10ms"}

// Inject returns the annotation that asks for a broker.
func Inject(value string) map[string]string {
	return map[string]string{contract.InjectAnnotation: value}
}

// Container returns a container of the demo application, which calls its broker. The
// environment has the options of the application.
func (c *Cluster) Container(name string, environment map[string]string) corev1.Container {
	container := corev1.Container{
		Name: name, Image: c.Images.Image("demo-app"), ImagePullPolicy: corev1.PullNever,
		SecurityContext: &corev1.SecurityContext{
			RunAsUser: ptr.To[int64](AppUser), RunAsGroup: ptr.To[int64](AppUser), RunAsNonRoot: ptr.To(true),
			AllowPrivilegeEscalation: ptr.To(false),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	for variable, value := range environment {
		container.Env = append(container.Env, corev1.EnvVar{Name: variable, Value: value})
	}
	return container
}

// Pod returns a pod with one container of the demo application.
func (c *Cluster) Pod(namespace string, annotations, environment map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "app-", Namespace: namespace, Annotations: annotations},
		Spec: corev1.PodSpec{
			// The application ends at once on SIGTERM.
			TerminationGracePeriodSeconds: ptr.To[int64](5),
			Containers:                    []corev1.Container{c.Container("app", environment)},
		},
	}
}

// Deployment returns a Deployment of such pods, each with a broker. Its name is the value
// of their label "app".
func (c *Cluster) Deployment(namespace, name string, replicas int32, environment map[string]string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	pod := c.Pod(namespace, Inject("true"), environment)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: pod.Annotations},
				Spec:       pod.Spec,
			},
		},
	}
}

// Ready reports whether a pod is ready and not being deleted.
func Ready(pod *corev1.Pod) bool {
	for _, each := range pod.Status.Conditions {
		if each.Type == corev1.PodReady {
			return each.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}

// DescribeContainers returns in short what state the containers of a pod are in.
func DescribeContainers(pod *corev1.Pod) string {
	var description string
	for _, each := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		state := "running"
		switch {
		case each.State.Waiting != nil:
			state = each.State.Waiting.Reason + " " + each.State.Waiting.Message
		case each.State.Terminated != nil:
			state = fmt.Sprintf("ended with status %d", each.State.Terminated.ExitCode)
		}
		description += fmt.Sprintf("[%s: %s, started %v, ready %v] ", each.Name, state, ptr.Deref(each.Started, false), each.Ready)
	}
	return description
}
