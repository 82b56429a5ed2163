// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/dryrun"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/manifest"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/workload"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
)

// explainOrigin explains a pod without a broker by the template that it was created from: whether
// the template asks for a broker now, and whether a new pod would get one, which it tries.
// byDefault reports whether the namespace's label asks for brokers of pods without an annotation.
func explainOrigin(ctx context.Context, t dryrun.Trial, pod *corev1.Pod, owner workload.Owner, byDefault bool, decision injection.Decision, calls calling, result *outcome, e *explanation) {
	w, known := owner.AnyWorkload()
	template := &manifest.PodTemplate{Pod: brokers.Probe(pod.Namespace), Namespace: pod.Namespace}
	made := "a new pod"
	if known {
		found, err := w.Made(ctx, t.Client)
		if err != nil {
			e.add("workload", "what the template of %s says is not known: %s", w, apierror.OneLine(apierror.Plain(err)))
			return
		}
		template, made = found.Pod(), "a new pod of "+w.String()
		move := explainMisplaced(found, w, e)
		asks, refused := decide(template.Pod, byDefault)
		switch {
		case !decision.Inject && move != "":
			*result = outcome{fmt.Sprintf("has no broker: %s itself asks for one, but its template does not.", w), move, false}
			return
		case !decision.Inject && refused == nil && asks.Inject:
			*result = outcome{fmt.Sprintf("has no broker, and the template of %s asks for one by now.", w), renewal(owner), false}
			return
		}
	}
	if !decision.Inject || calls.hindrance() != "" {
		return
	}
	admitted, err := t.Create(ctx, template, template.Pod.Annotations)
	t.Warnings.Take()
	var refusal *injection.Refusal
	switch {
	case errors.As(err, &refusal):
		result.advice = fmt.Sprintf("A restart would not bring a broker now: %s %v\n%s", made, refusal, wayOut(ctx, t, w, template, refusal, calls, e))
	case err != nil:
		e.add("new pod", "the command could not find out whether a new pod gets a broker: %s", apierror.OneLine(apierror.Plain(err)))
	case injected.Broker(admitted) == nil:
		reason := t.WhyNot(ctx, template)
		result.advice = strings.TrimSpace(fmt.Sprintf("A restart would not bring a broker now: %s gets no broker: %s. %s", made, reason, optInAdvice(reason)))
		if calls.ignores {
			result.advice += "\n" + explainOperator(ctx, t.Client, calls.service, e)
		}
	}
}

// wayOut returns what to do if a new pod of a workload is refused.
func wayOut(ctx context.Context, t dryrun.Trial, w workload.Workload, p *manifest.PodTemplate, refusal *injection.Refusal, calls calling, e *explanation) string {
	said := refusal.Error()
	if installation.Uncalled(said) {
		return explainOperator(ctx, t.Client, cmp.Or(calls.service, serviceIn(said)), e)
	}
	if advice, limited := explainLimits(ctx, t, w, p, said, e); limited {
		return advice
	}
	switch {
	case w == (workload.Workload{}):
		return "Correct what the message names."
	case w.TemplatePath() == nil:
		return fmt.Sprintf("No pod is created until what the message names is corrected, and %s is created again.", w)
	default:
		return fmt.Sprintf("No pod is created until what the message names is corrected: kubectl edit %s -n %s", w, w.Namespace)
	}
}

// explainMisplaced prints annotations on the workload itself, where they have no effect. If one
// of them asks for a broker and the template does not, it returns how to move it to the template.
func explainMisplaced(m workload.Made, w workload.Workload, e *explanation) (move string) {
	own, misplaced := m.Own.GetAnnotations(), map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(own)) {
		if !strings.HasPrefix(key, contract.AnnotationPrefix) || own[key] == m.Template.Annotations[key] {
			continue
		}
		e.add("annotation", "%s: %q of the %s itself has no effect: it belongs to the template", key, own[key], w.Kind)
		if _, says := m.Template.Annotations[key]; !says {
			misplaced[key] = own[key]
		}
	}
	if misplaced[contract.InjectAnnotation] != "true" {
		return ""
	}
	if command := w.Annotate(misplaced); command != "" {
		return fmt.Sprintf("Put the annotation on the template, which makes new pods:\n  %s", command)
	}
	return fmt.Sprintf("Put the annotation on the template, and create %s again.", w)
}
