// SPDX-License-Identifier: Apache-2.0

// Package dryrun creates pods in a cluster as dry runs, to find out how admission changes them.
// Nothing is stored.
package dryrun

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// QuotaExceeded is a part of the API server's message when a ResourceQuota is used up.
const QuotaExceeded = " exceeded quota: "

// Trial tries pods in a cluster.
type Trial struct {
	Client kubernetes.Interface
	// Warnings collects the warnings of the API server, if it is the warning handler of Client.
	// It may be nil for Create and WhyNot.
	Warnings *Warnings
}

// Warnings collects warnings of the API server.
type Warnings struct {
	mu    sync.Mutex
	lines []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *Warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.lines, text) {
		w.lines = append(w.lines, text)
	}
}

// Take returns the warnings since its last call.
func (w *Warnings) Take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := w.lines
	w.lines = nil
	return lines
}

// Inject adds the changes of admission for the broker to the pod of a manifest. It computes them
// as the difference between two dry runs: of the pod, and of the same pod with injection
// declined. Both have the defaults of the API server and the changes of other webhooks, so those
// do not get into the manifest.
func (t Trial) Inject(ctx context.Context, p *manifest.PodTemplate) (said []string, added bool, err error) {
	admitted, err := t.Create(ctx, p, p.Pod.Annotations)
	said = t.Warnings.Take()
	if err != nil {
		return said, false, err
	}
	if injected.Broker(admitted) == nil {
		return append(said, "gets no broker: "+t.WhyNot(ctx, p)), false, nil
	}
	without, err := t.CreateWithout(ctx, p)
	var refusal *injection.Refusal
	switch {
	case errors.As(err, &refusal):
		return said, false, &injection.Refusal{Problems: []string{"without a broker, to compare with, it " + strings.Join(refusal.Problems, "; ")}}
	case err != nil:
		return said, false, err
	}
	return said, true, p.Patch(without, admitted)
}

// Create creates the pod of a template as a dry run. If the API server refuses it, the error is a
// refusal of the pod. Create adds the volumes of claims as the controller does, because mounts
// without a volume are refused. The claims need not exist.
func (t Trial) Create(ctx context.Context, p *manifest.PodTemplate, annotations map[string]string) (*corev1.Pod, error) {
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
	created, err := t.Client.CoreV1().Pods(p.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
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

// CreateWithout creates the same pod with injection declined. It drops the warnings, because the
// user did not ask for that pod.
func (t Trial) CreateWithout(ctx context.Context, p *manifest.PodTemplate) (*corev1.Pod, error) {
	declines := map[string]string{}
	maps.Copy(declines, p.Pod.Annotations)
	declines[contract.InjectAnnotation] = "false"
	created, err := t.Create(ctx, p, declines)
	t.Warnings.Take()
	return created, err
}

// WhyNot returns why the cluster gives a pod no broker.
func (t Trial) WhyNot(ctx context.Context, p *manifest.PodTemplate) string {
	labelled := false
	if namespace, err := t.Client.CoreV1().Namespaces().Get(ctx, p.Namespace, metav1.GetOptions{}); err == nil {
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
