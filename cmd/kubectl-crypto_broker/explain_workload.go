// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/webhook"
)

// namedPods is how many pods without a broker are called by their names.
const namedPods = 3

// isWorkload tells the name of a workload from that of a pod.
func isWorkload(argument string) bool {
	kind, _, both := strings.Cut(argument, "/")
	return both && !slices.Contains([]string{"pod", "pods", "po"}, strings.ToLower(kind))
}

// explainWorkload tells what becomes of the pods of a workload, which may be the
// reason that it has none: a pod of its template is created as a dry run.
func explainWorkload(ctx context.Context, t trial, w workload, out io.Writer) error {
	found, err := w.made(ctx, t.client)
	if err != nil {
		return err
	}
	template := found.pod()
	pod := template.pod
	var e explanation
	labels, labelsKnown := explainNamespace(ctx, t.client, w.namespace, &e)
	if value, misplaced := found.own.GetAnnotations()[v1alpha1.InjectAnnotation]; misplaced {
		e.add("annotation", "%s: %q of the %s itself has no effect: it belongs to the template", v1alpha1.InjectAnnotation, value, w.kind)
	}
	asked := explainAnnotation(pod, &e)
	decision, _ := decide(pod, labels[v1alpha1.InjectionLabel] == v1alpha1.InjectionEnabled) // that it is refused is what the trial tells
	calls := explainInjection(ctx, t.client, w.namespace, labels, &e)
	admitted, tried := t.create(ctx, template, pod.Annotations)
	for _, warning := range t.warnings.take() {
		e.add("warning", "%s", oneLine(warning))
	}
	lacking, err := found.explainPods(ctx, t.client, w.namespace, &e)
	if err != nil {
		return err
	}
	verdict, advice := concludeWorkload(w, admitted, tried, decision, calls, lacking)
	if guessed := !asked && !labelsKnown && !decision.Inject; guessed && admitted == nil && !errors.As(tried, new(*webhook.Refusal)) {
		verdict, advice = "whether a new pod of it gets a broker is not known, and could not be tried: "+oneLine(plain(tried)), ""
	} else if guessed && admitted != nil && brokerOf(admitted) == nil {
		verdict = "a new pod of it gets no broker."
	}
	return e.write(out, fmt.Sprintf("%s in namespace %s: %s", w, w.namespace, verdict), advice)
}

// concludeWorkload says what is so and what to do. admitted is the pod that was
// tried, or tried why there is none; lacking is how many pods have no broker.
func concludeWorkload(w workload, admitted *corev1.Pod, tried error, decision webhook.Decision, calls calling, lacking int) (verdict, advice string) {
	restart := ""
	if _, can := kinds[w.kind]; can {
		restart = fmt.Sprintf(" Restart it: %s restart %s -n %s", name, w, w.namespace)
	}
	var refusal *webhook.Refusal
	switch {
	case errors.As(tried, &refusal):
		return "a new pod of it " + refusal.Error(), "None is created until the template, or what refuses it, is corrected."
	case tried != nil && decision.Inject:
		return "its template asks for a broker; whether a new pod gets one could not be tried: " + oneLine(plain(tried)), ""
	case tried == nil && brokerOf(admitted) != nil && lacking > 0:
		return "a new pod of it gets a broker.", "Pods that have none were created before the template, the label or the operator was as it is." + restart
	case tried == nil && brokerOf(admitted) != nil:
		return "a new pod of it gets a broker.", ""
	case decision.Inject:
		if advice = calls.hindrance(); advice == "" {
			advice = "Who should put it in leaves it out: the log of the operator says more."
		}
		if calls.known && !calls.covers {
			return "a new pod of it gets no broker, though it asks for one.", advice
		}
		return "a new pod of it gets no broker, though it should.", advice
	default:
		return fmt.Sprintf("a new pod of it gets no broker, as it should: %s.", decision.Reason), wish(decision.Reason)
	}
}

// explainPods tells how many pods of a workload have a broker, and returns how
// many have none.
func (m made) explainPods(ctx context.Context, client kubernetes.Interface, namespace string, e *explanation) (lacking int, err error) {
	if m.refused != "" {
		e.add("pods", "some are not created: %s", oneLine(m.refused))
	}
	if m.selector == nil {
		return 0, nil
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(m.selector)})
	if err != nil {
		e.add("pods", "which there are is not known: %s", oneLine(plain(err)))
		return 0, nil
	}
	all := 0
	var without []string
	for i := range pods.Items {
		if pod := &pods.Items[i]; !ended(pod) {
			all++
			if brokerOf(pod) == nil {
				without = append(without, pod.Name)
			}
		}
	}
	lacking = len(without)
	switch {
	case all == 0:
		e.add("pods", "there are none")
	case lacking == 0:
		e.add("pods", "%s, with a broker", count(all, "pod"))
	default:
		more := ""
		if lacking > namedPods {
			more = fmt.Sprintf(" and %d more", lacking-namedPods)
			without = without[:namedPods]
		}
		e.add("pods", "%s, of which %d without a broker: %s%s", count(all, "pod"), lacking, strings.Join(without, ", "), more)
	}
	return lacking, nil
}
