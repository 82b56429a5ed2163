// SPDX-License-Identifier: Apache-2.0

// Package explain explains why a pod has a broker or has none, why a broker does not serve the
// profiles of its namespace, and whether new pods of a workload or of a manifest get brokers.
// Each explanation has a verdict, a table of the checked facts, and advice.
//
// It changes nothing, because it creates pods only as dry runs. If the user has no right to read
// something, a line of the table says so, and the verdict says what is not known.
package explain

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/coverage"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/dryrun"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/text"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/workload"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
)

// explanation collects what the command prints about a pod, a line each.
type explanation struct{ lines [][2]string }

func (e *explanation) add(about, format string, args ...any) {
	e.lines = append(e.lines, [2]string{about, fmt.Sprintf(format, args...)})
}

// outcome is the result of an explanation.
type outcome struct {
	verdict, advice string
	// fine reports whether nothing is wrong.
	fine bool
}

// Pod checks everything that decides whether the pod gets a broker, in the order of the
// decisions. It reports whether nothing is wrong.
func Pod(ctx context.Context, t dryrun.Trial, pod *corev1.Pod, out io.Writer) (fine bool, err error) {
	var e explanation
	labels, labelsKnown := explainNamespace(ctx, t.Client, pod.Namespace, &e)
	decision, refusal := explainPod(pod, labels[contract.InjectionLabel] == contract.InjectionEnabled, labelsKnown, &e)
	calls := explainInjection(ctx, t.Client, pod.Namespace, labels, &e)
	owner, err := workload.NewOwners(t.Client).Of(ctx, pod)
	if err != nil {
		return false, err
	}
	_, asked := pod.Annotations[contract.InjectAnnotation]
	result := conclude(pod, decision, refusal, calls, owner)
	switch broker := injected.Broker(pod); {
	case !asked && !labelsKnown && !decision.Inject && refusal == nil:
		result = outcome{verdict: "has no broker; whether it should have one is not known."}
		if broker != nil {
			result.verdict = "has a broker; whether a new pod would get one is not known."
		}
	case broker == nil && refusal == nil:
		explainOrigin(ctx, t, pod, owner, labels[contract.InjectionLabel] == contract.InjectionEnabled, decision, calls, &result, &e)
	}
	if injected.Broker(pod) != nil {
		so, advice := explainBroker(ctx, t.Client, pod, labels, renewal(owner), &e)
		if so != "" {
			result.verdict, result.fine = strings.TrimSuffix(result.verdict, ".")+", "+so+".", false
			result.advice = strings.TrimSpace(result.advice + "\n" + advice)
		}
	}
	return e.write(out, fmt.Sprintf("Pod %s in namespace %s ", pod.Name, pod.Namespace), result)
}

// write prints the explanation, the verdict about the subject first.
func (e *explanation) write(out io.Writer, subject string, result outcome) (fine bool, err error) {
	fmt.Fprintf(out, "%s%s\n\n", subject, result.verdict)
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, line := range e.lines {
		fmt.Fprintf(table, "  %s\t%s\n", line[0], line[1])
	}
	if err := table.Flush(); err != nil {
		return false, err
	}
	if result.advice != "" {
		fmt.Fprintf(out, "\n%s\n", result.advice)
	}
	return result.fine, nil
}

// explainNamespace prints what the label of the namespace says, and returns the
// namespace's labels. If the user may not read the namespace, these are the labels
// that every namespace has.
func explainNamespace(ctx context.Context, client kubernetes.Interface, name string, e *explanation) (labels map[string]string, known bool) {
	namespace, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch {
	case coverage.Excluded(name):
		e.add("namespace", "%s is never injected into", name)
	case err != nil:
		e.add("namespace", "whether %s has the label %s=%s is not known: %s", name, contract.InjectionLabel, contract.InjectionEnabled, apierror.OneLine(apierror.Plain(err)))
	case brokers.IsLabelled(namespace):
		e.add("namespace", "%s has the label %s=%s: its pods get a broker unless they decline", name, contract.InjectionLabel, contract.InjectionEnabled)
	default:
		e.add("namespace", "%s has no label %s=%s: a pod gets a broker only if it asks", name, contract.InjectionLabel, contract.InjectionEnabled)
	}
	if err != nil {
		return map[string]string{corev1.LabelMetadataName: name}, coverage.Excluded(name)
	}
	return namespace.Labels, true
}

// explainPod prints whether a pod like this one gets a broker.
func explainPod(pod *corev1.Pod, byDefault, known bool, e *explanation) (injection.Decision, error) {
	asked := explainAnnotation(pod, e)
	decision, refusal := decide(pod, byDefault)
	switch {
	case refusal != nil:
		e.add("pod", "would be refused: %v", refusal)
	case !known && !asked:
		e.add("pod", "gets a broker when it is created if its namespace has the label")
	case decision.Inject:
		e.add("pod", "gets a broker when it is created")
	default:
		e.add("pod", "gets no broker when it is created: %s", decision.Reason)
	}
	return decision, refusal
}

// explainAnnotation prints the annotation by which a pod asks for a broker or declines.
func explainAnnotation(pod *corev1.Pod, e *explanation) (asked bool) {
	value, asked := pod.Annotations[contract.InjectAnnotation]
	if asked {
		e.add("annotation", "%s is %q", contract.InjectAnnotation, value)
	} else {
		e.add("annotation", "there is no %s", contract.InjectAnnotation)
	}
	return asked
}

// decide returns what the operator decides about a pod in its namespace.
func decide(pod *corev1.Pod, byDefault bool) (injection.Decision, error) {
	decision, refusal := injection.Decide(pod, byDefault)
	if refusal == nil && coverage.Excluded(pod.Namespace) {
		decision = injection.Decision{Reason: coverage.ExcludedNamespace}
	}
	return decision, refusal
}

// renewal returns how to replace a pod by a new one.
func renewal(owner workload.Owner) string {
	if w, can := owner.Workload(); can {
		return renewalOf(w)
	}
	return "Create it again."
}

// conclude returns the verdict about a pod, and what to do.
func conclude(pod *corev1.Pod, decision injection.Decision, refusal error, calls calling, owner workload.Owner) outcome {
	has, restart := injected.Broker(pod) != nil, renewal(owner)
	created := "It was created at " + pod.CreationTimestamp.UTC().Format(text.TimeFormat)
	switch {
	case has && refusal == nil && decision.Inject:
		return outcome{"has a broker, as it should.", "", true}
	case has:
		return outcome{"has a broker, though it would get none now.", "The annotation, the label or the list of excluded namespaces has changed since. " + restart, false}
	case refusal != nil:
		return outcome{"has no broker, and asks for one in a way that is refused.", "Correct the annotation. " + restart, false}
	case !decision.Inject:
		return outcome{"has no broker, as it should.", optInAdvice(decision.Reason), true}
	case calls.known && !calls.covers:
		return outcome{"has no broker, though it asks for one.", calls.hindrance(), false}
	case calls.hindrance() != "":
		return outcome{"has no broker, though it should have one.", calls.hindrance(), false}
	case calls.known && pod.CreationTimestamp.Before(&calls.since):
		return outcome{"has no broker, though it should have one.", created + ", before the operator was installed. " + restart, false}
	default:
		return outcome{"has no broker, though it should have one.", fmt.Sprintf("%s, while %s, or before the annotation or the label was there. %s", created, calls.without(), restart), false}
	}
}

// optInAdvice returns how a pod that has no broker for this reason gets one.
func optInAdvice(reason string) string {
	switch reason {
	case "declined", "not asked":
		return fmt.Sprintf("To get one, it needs the annotation %s: \"true\" when it is created (in a Deployment: on its template).", contract.InjectAnnotation)
	default:
		return ""
	}
}
