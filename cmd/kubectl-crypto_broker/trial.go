// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/coverage"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/manifest"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
)

// trial tries pods in a cluster as dry runs.
type trial struct {
	client   kubernetes.Interface
	warnings *collected
}

// collected keeps warnings of the API server.
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

// take returns the warnings since its last call.
func (c *collected) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := c.lines
	c.lines = nil
	return lines
}

// inject puts into the pod of a manifest what admission adds for its broker. That is
// the difference between two dry runs: of the pod, and of the same pod with injection
// declined. Both have the defaults of the API server and the changes of others, so
// these do not get into the manifest.
func (t trial) inject(ctx context.Context, p *manifest.PodTemplate) (said []string, added bool, err error) {
	admitted, err := t.create(ctx, p, p.Pod.Annotations)
	said = t.warnings.take()
	if err != nil {
		return said, false, err
	}
	if injected.Broker(admitted) == nil {
		return append(said, "gets no broker: "+t.whyNot(ctx, p)), false, nil
	}
	declines := map[string]string{}
	for key, value := range p.Pod.Annotations {
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
	return said, true, p.Patch(without, admitted)
}

// create creates the pod of a template as a dry run. If the API server refuses it, the
// error is a refusal of the pod. create adds the volumes of claims as the controller
// does, because mounts without a volume are refused; the claims need not exist.
func (t trial) create(ctx context.Context, p *manifest.PodTemplate, annotations map[string]string) (*corev1.Pod, error) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "crypto-broker-dry-run-", Namespace: p.Namespace, Labels: p.Pod.Labels, Annotations: annotations},
		Spec:       *p.Pod.Spec.DeepCopy(),
	}
	pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, p.OfClaim)
	for _, claim := range p.Claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim + "-crypto-broker-dry-run"},
		}})
	}
	created, err := t.client.CoreV1().Pods(p.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case err == nil:
		return created, nil
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("namespace %q is not in the cluster, where a dry run needs it: create it, or leave --from-cluster out", p.Namespace)
	case apierror.LacksRight(err) || apierrors.IsUnauthorized(err) || apierrors.ReasonForError(err) == metav1.StatusReasonUnknown:
		return nil, err
	default:
		return nil, &injection.Refusal{Problems: []string{"is refused: " + apierror.OneLine(err.Error())}}
	}
}

// whyNot says why the cluster gives a pod no broker.
func (t trial) whyNot(ctx context.Context, p *manifest.PodTemplate) string {
	labelled := false
	if namespace, err := t.client.CoreV1().Namespaces().Get(ctx, p.Namespace, metav1.GetOptions{}); err == nil {
		labelled = brokers.IsLabelled(namespace)
	}
	decision, err := injection.Decide(p.Pod, labelled)
	switch {
	case err == nil && !decision.Inject && coverage.Excluded(p.Namespace):
		return coverage.ExcludedNamespace
	case err == nil && !decision.Inject:
		return decision.Reason
	default:
		return "the operator is not installed, or is not called for namespace " + p.Namespace
	}
}
