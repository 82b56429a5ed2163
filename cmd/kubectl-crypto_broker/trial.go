// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
)

// trial asks a cluster what it makes of pods.
type trial struct {
	client   kubernetes.Interface
	warnings *collected
}

// collected are warnings of the API server.
type collected struct {
	mu    sync.Mutex
	lines []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (c *collected) HandleWarningHeader(_ int, _ string, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.lines, text) {
		c.lines = append(c.lines, text)
	}
}

// take returns the warnings since the last time.
func (c *collected) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := c.lines
	c.lines = nil
	return lines
}

// inject puts into the pod of a manifest what admission adds to it for its
// broker: what a dry run makes of the pod, less what one makes of the same pod
// that declines. Defaults of the API server and what others put in are in both,
// and so not in the manifest.
func (t trial) inject(ctx context.Context, p *podTemplate) (said []string, added bool, err error) {
	admitted, err := t.create(ctx, p, p.pod.Annotations)
	said = t.warnings.take()
	if err != nil {
		return said, false, err
	}
	if injected.Broker(admitted) == nil {
		return append(said, "gets no broker: "+t.whyNot(ctx, p)), false, nil
	}
	declines := map[string]string{}
	for key, value := range p.pod.Annotations {
		declines[key] = value
	}
	declines[contract.InjectAnnotation] = "false"
	without, err := t.create(ctx, p, declines)
	t.warnings.take() // about a pod that nobody asked for
	var refusal *injection.Refusal
	switch {
	case errors.As(err, &refusal):
		return said, false, &injection.Refusal{Problems: []string{"without a broker, to compare with, it " + strings.Join(refusal.Problems, "; ")}}
	case err != nil:
		return said, false, err
	}
	return said, true, p.patch(without, admitted)
}

// create makes the pod of a template as a dry run. The API server's refusal is
// one of the pod. The volumes of claims are added as the controller does, without
// which what mounts them is refused; the claims need not be there.
func (t trial) create(ctx context.Context, p *podTemplate, annotations map[string]string) (*corev1.Pod, error) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "crypto-broker-dry-run-", Namespace: p.namespace, Labels: p.pod.Labels, Annotations: annotations},
		Spec:       *p.pod.Spec.DeepCopy(),
	}
	pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, p.ofClaim)
	for _, claim := range p.claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim + "-crypto-broker-dry-run"},
		}})
	}
	created, err := t.client.CoreV1().Pods(p.namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case err == nil:
		return created, nil
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("namespace %q is not in the cluster, where a dry run needs it: create it, or leave --from-cluster out", p.namespace)
	case lacksRight(err) || apierrors.IsUnauthorized(err) || apierrors.ReasonForError(err) == metav1.StatusReasonUnknown:
		return nil, err
	default:
		return nil, &injection.Refusal{Problems: []string{"is refused: " + oneLine(err.Error())}}
	}
}

// ofClaim tells the volumes that a StatefulSet makes of its claim templates.
func (p *podTemplate) ofClaim(volume corev1.Volume) bool {
	return slices.Contains(p.claims, volume.Name)
}

// whyNot says why the cluster gives a pod no broker.
func (t trial) whyNot(ctx context.Context, p *podTemplate) string {
	labelled := false
	if namespace, err := t.client.CoreV1().Namespaces().Get(ctx, p.namespace, metav1.GetOptions{}); err == nil {
		labelled = isLabelled(namespace)
	}
	decision, err := injection.Decide(p.pod, labelled)
	switch {
	case err == nil && !decision.Inject && excluded(p.namespace):
		return excludedNamespace
	case err == nil && !decision.Inject:
		return decision.Reason
	default:
		return "the operator is not installed, or is not called for namespace " + p.namespace
	}
}

// patch puts into the manifest what is in one pod and not in the other.
func (p *podTemplate) patch(without, with *corev1.Pod) error {
	before, err := p.essence(without)
	if err != nil {
		return err
	}
	after, err := p.essence(with)
	if err != nil {
		return err
	}
	difference, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
	if err != nil {
		return fmt.Errorf("comparing the pods with and without a broker: %w", err)
	}
	written, err := json.Marshal(p.fields)
	if err != nil {
		return err
	}
	patched, err := strategicpatch.StrategicMergePatch(written, difference, corev1.Pod{})
	if err != nil {
		return fmt.Errorf("writing the broker into the manifest: %w", err)
	}
	clear(p.fields)
	return json.Unmarshal(patched, &p.fields)
}

// tokenVolume begins the name of the volume by which each pod gets a token, which
// is another each time.
const tokenVolume = "kube-api-access-"

// essence is a pod as JSON, less what each pod has of its own.
func (p *podTemplate) essence(pod *corev1.Pod) ([]byte, error) {
	bare := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: map[string]string{}}, Spec: *pod.Spec.DeepCopy()}
	for key, value := range pod.Annotations {
		bare.Annotations[key] = value
	}
	delete(bare.Annotations, contract.InjectAnnotation) // by which they differ, and which is written already
	own := func(volume string) bool {
		return strings.HasPrefix(volume, tokenVolume) &&
			!slices.ContainsFunc(p.pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume })
	}
	spec := &bare.Spec
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return own(v.Name) || p.ofClaim(v) })
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].VolumeMounts = slices.DeleteFunc(containers[i].VolumeMounts, func(m corev1.VolumeMount) bool { return own(m.Name) })
		}
	}
	return json.Marshal(bare)
}
