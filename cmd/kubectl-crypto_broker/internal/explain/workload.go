// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/dryrun"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/manifest"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/text"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/workload"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
)

// namedPods is the number of pods without a broker that a message names.
const namedPods = 3

// IsWorkload reports whether an argument names a workload and not a pod.
func IsWorkload(argument string) bool {
	kind, _, both := strings.Cut(argument, "/")
	return both && !slices.Contains([]string{"pod", "pods", "po"}, strings.ToLower(kind))
}

// Workload explains whether new pods of a workload get a broker, by creating a pod of
// its template as a dry run. So it also explains a workload whose pods are refused. It
// reports whether nothing is wrong.
func Workload(ctx context.Context, t dryrun.Trial, w workload.Workload, out io.Writer) (fine bool, err error) {
	found, err := w.Made(ctx, t.Client)
	if err != nil {
		return false, err
	}
	template := found.Pod()
	pod := template.Pod
	var e explanation
	labels, labelsKnown := explainNamespace(ctx, t.Client, w.Namespace, &e)
	move := explainMisplaced(found, w, &e)
	asked := explainAnnotation(pod, &e)
	decision, _ := decide(pod, labels[contract.InjectionLabel] == contract.InjectionEnabled) // the dry run reports the refusal
	calls := explainInjection(ctx, t.Client, w.Namespace, labels, &e)
	admitted, tried := t.Create(ctx, template, pod.Annotations)
	for _, warning := range t.Warnings.Take() {
		e.add("warning", "%s", apierror.OneLine(warning))
	}
	pods := explainPods(ctx, found, t.Client, w.Namespace, &e)
	result := concludeWorkload(ctx, t, w, template, admitted, tried, decision, calls, pods.lacking, &e)
	guessed := !asked && !labelsKnown && !decision.Inject
	switch {
	case guessed && admitted == nil && !errors.As(tried, new(*injection.Refusal)):
		result = outcome{verdict: "it is not known whether a new pod of it gets a broker, and the dry run failed: " + apierror.OneLine(apierror.Plain(tried))}
	case guessed && admitted != nil && injected.Broker(admitted) == nil:
		result.verdict = "a new pod of it gets no broker."
	}
	if move != "" && !decision.Inject {
		result.verdict, result.advice, result.fine = "a new pod of it gets no broker: the annotation is not on its template.", move, false
	}
	if pods.first != nil {
		e.add("broker", "of pod %s:", pods.first.Name)
		so, advice := explainBroker(ctx, t.Client, pods.first, labels, renewalOf(w), &e)
		if so != "" {
			result.verdict, result.fine = strings.TrimSuffix(result.verdict, ".")+fmt.Sprintf("; pod %s of it has one, %s.", pods.first.Name, so), false
			if advice != "" && !brokers.Started(pods.first) { // a restart would wait for the same
				result.advice = ""
			}
			result.advice = strings.TrimSpace(result.advice + "\n" + advice)
		}
	} else if sets := brokers.NewSets(t.Client); admitted != nil && injected.Broker(admitted) != nil && sets.None(ctx, w.Namespace) {
		why := explainNoProfile
		if sets.BaselineMissing(ctx, w.Namespace) {
			why = explainBaseline
		}
		result.advice = strings.TrimSpace(result.advice + "\n" + why(ctx, t.Client, w.Namespace, labels, &e))
		result.verdict, result.fine = "a new pod of it gets a broker, and the namespace has no profile that the broker could serve.", false
	}
	return e.write(out, fmt.Sprintf("%s in namespace %s: ", w, w.Namespace), result)
}

// renewalOf returns how to replace the pods of a workload by new ones.
func renewalOf(w workload.Workload) string {
	if _, can := workload.Kinds[w.Kind]; can {
		return fmt.Sprintf("Restart it: %s restart %s -n %s", text.Plugin, w, w.Namespace)
	}
	return "Create it again."
}

// concludeWorkload returns the verdict about a workload, and what to do. admitted is the pod of
// the dry run, or nil if the dry run failed with the error tried. lacking is the number of pods
// that have no broker.
func concludeWorkload(ctx context.Context, t dryrun.Trial, w workload.Workload, template *manifest.PodTemplate, admitted *corev1.Pod, tried error, decision injection.Decision, calls calling, lacking int, e *explanation) outcome {
	var refusal *injection.Refusal
	switch {
	case errors.As(tried, &refusal):
		return outcome{"a new pod of it " + refusal.Error(), wayOut(ctx, t, w, template, refusal, calls, e), false}
	case tried != nil && decision.Inject:
		return outcome{"its template asks for a broker; the dry run that would show whether a new pod gets one failed: " + apierror.OneLine(apierror.Plain(tried)), "", false}
	case tried == nil && injected.Broker(admitted) != nil && lacking > 0:
		return outcome{"a new pod of it gets a broker.", "Pods without a broker were created before the template, the label or the operator was changed. " + renewalOf(w), false}
	case tried == nil && injected.Broker(admitted) != nil:
		return outcome{"a new pod of it gets a broker.", "", true}
	case decision.Inject && calls.known && !calls.covers:
		return outcome{"a new pod of it gets no broker, though it asks for one.", calls.hindrance(), false}
	case decision.Inject && calls.hindrance() == "" && calls.ignores:
		return outcome{"a new pod of it gets no broker, though it should.", "Its webhook lets pods in without one (failurePolicy Ignore) while the operator does not answer.\n" + explainOperator(ctx, t.Client, calls.service, e), false}
	case decision.Inject:
		return outcome{"a new pod of it gets no broker, though it should.", cmp.Or(calls.hindrance(), "The operator does not inject it: its log says more."), false}
	default:
		return outcome{fmt.Sprintf("a new pod of it gets no broker, as it should: %s.", decision.Reason), optInAdvice(decision.Reason), true}
	}
}

// podsOf describes the pods of a workload.
type podsOf struct {
	// lacking is the number of pods without a broker.
	lacking int
	// first is the pod whose broker is explained: a pod whose broker has not started, or else the
	// oldest pod, because problems show there first. It is nil if no pod has a broker.
	first *corev1.Pod
}

// worseOff reports whether a pod is better suited than another one to explain what is wrong.
func worseOff(pod, than *corev1.Pod) bool {
	if brokers.Started(pod) != brokers.Started(than) {
		return !brokers.Started(pod)
	}
	return pod.CreationTimestamp.Before(&than.CreationTimestamp)
}

// explainPods prints how many pods of a workload have a broker.
func explainPods(ctx context.Context, m workload.Made, client kubernetes.Interface, namespace string, e *explanation) (of podsOf) {
	if m.Refused != "" {
		e.add("pods", "some are not created: %s", apierror.OneLine(m.Refused))
	}
	if m.Selector == nil {
		return of
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(m.Selector)})
	if err != nil {
		e.add("pods", "its pods cannot be listed: %s", apierror.OneLine(apierror.Plain(err)))
		return of
	}
	all := 0
	var without []string
	for i := range pods.Items {
		if pod := &pods.Items[i]; !workload.Ended(pod) {
			all++
			switch {
			case injected.Broker(pod) == nil:
				without = append(without, pod.Name)
			case of.first == nil || worseOff(pod, of.first):
				of.first = pod
			}
		}
	}
	of.lacking = len(without)
	switch {
	case all == 0:
		e.add("pods", "there are none")
	case of.lacking == 0:
		e.add("pods", "%s, with a broker", text.Count(all, "pod"))
	default:
		more := ""
		if of.lacking > namedPods {
			more = fmt.Sprintf(" and %d more", of.lacking-namedPods)
			without = without[:namedPods]
		}
		e.add("pods", "%s, of which %d without a broker: %s%s", text.Count(all, "pod"), of.lacking, strings.Join(without, ", "), more)
	}
	return of
}
