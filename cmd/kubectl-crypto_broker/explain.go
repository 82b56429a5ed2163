// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/webhook"
)

func newExplain(cluster *cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain (POD | -f FILE...)",
		Short: "Explain why a pod has a broker or has none",
		Long: `Explains why a pod has a broker or has none: what its annotation and its namespace say, whether it is of a kind
that gets none, whether the operator is called for its namespace or the API server injects there by a policy,
whether webhook, policy, binding and template are whole, and whether the pod was created before that; and what a
broker waits for that has not started. Then it says what to do.

Of manifests it tells, without a cluster, which pods would get a broker, and why not.`,
		Example: `  ` + name + ` explain orders-5d8f7c9b4-x2x7k -n shop
  ` + name + ` explain -f deployment.yaml`,
	}
	cluster.flags(cmd, false)
	cmd.ValidArgsFunction = cluster.complete(podNames)
	o := offline{files: filesFlag(cmd), template: defaultTemplate()}
	o.labelledFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch manifests := len(*o.files) > 0; {
		case manifests && len(args) > 0 || !manifests && len(args) != 1:
			return usagef("found %s, expected either the name of one pod or -f FILE", count(len(args), "argument"))
		case manifests:
			if o.namespace = cluster.overrides.Context.Namespace; o.namespace == "" {
				o.namespace = "default"
			}
			return o.explain(cmd)
		}
		client, namespace, err := cluster.connect()
		if err != nil {
			return err
		}
		podName := strings.TrimPrefix(args[0], "pod/")
		if strings.Contains(podName, "/") {
			return usagef("found %q, expected the name of a pod, as kubectl get pods -n %s has it; where a workload has no pods, kubectl get events -n %s says why", args[0], namespace, namespace)
		}
		pod, err := client.CoreV1().Pods(namespace).Get(cmd.Context(), podName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return explain(cmd.Context(), client, pod, cmd.OutOrStdout())
	}
	return cmd
}

// explanation collects what is told of a pod, a line each.
type explanation struct{ lines [][2]string }

func (e *explanation) add(about, format string, args ...any) {
	e.lines = append(e.lines, [2]string{about, fmt.Sprintf(format, args...)})
}

// explain looks at everything that decides, in the order in which it decides.
func explain(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, out io.Writer) error {
	var e explanation
	labels, labelsKnown := explainNamespace(ctx, client, pod.Namespace, &e)
	decision, refusal := explainPod(pod, labels[v1alpha1.InjectionLabel] == v1alpha1.InjectionEnabled, labelsKnown, &e)
	calls := explainInjection(ctx, client, pod.Namespace, labels, &e)
	owner, err := newOwners(client).of(ctx, pod)
	if err != nil {
		return err
	}
	verdict, advice := conclude(pod, decision, refusal, calls, owner)
	if _, asked := pod.Annotations[v1alpha1.InjectAnnotation]; !asked && !labelsKnown && !decision.Inject && refusal == nil {
		verdict, advice = "has no broker, and whether it should have one is not known.", ""
		if brokerOf(pod) != nil {
			verdict = "has a broker, and whether a new one would get one is not known."
		}
	}
	if broker := brokerOf(pod); broker != nil {
		e.add("broker", "image %s, injected by %s", broker.Image, orNone(pod.Annotations[v1alpha1.InjectedAnnotation], "nobody who left a stamp"))
		if !started(pod) && !ended(pod) {
			e.add("broker", "has not started: %s", waiting(ctx, pod, newSets(client)))
		}
	}

	fmt.Fprintf(out, "Pod %s in namespace %s %s\n\n", pod.Name, pod.Namespace, verdict)
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, line := range e.lines {
		fmt.Fprintf(table, "  %s\t%s\n", line[0], line[1])
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if advice != "" {
		fmt.Fprintf(out, "\n%s\n", advice)
	}
	return nil
}

func orNone(text, none string) string {
	if text == "" {
		return none
	}
	return text
}

// explainNamespace tells what the namespace says. Where it may not be read, its
// labels are those that every namespace has.
func explainNamespace(ctx context.Context, client kubernetes.Interface, name string, e *explanation) (labels map[string]string, known bool) {
	namespace, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch {
	case excluded(name):
		e.add("namespace", "%s is never injected into", name)
	case err != nil:
		e.add("namespace", "whether %s has the label %s=%s is not known: %s", name, v1alpha1.InjectionLabel, v1alpha1.InjectionEnabled, oneLine(plain(err)))
	case isLabelled(namespace):
		e.add("namespace", "%s has the label %s=%s: its pods get a broker unless they decline", name, v1alpha1.InjectionLabel, v1alpha1.InjectionEnabled)
	default:
		e.add("namespace", "%s has no label %s=%s: a pod gets a broker only if it asks", name, v1alpha1.InjectionLabel, v1alpha1.InjectionEnabled)
	}
	if err != nil {
		return map[string]string{corev1.LabelMetadataName: name}, excluded(name)
	}
	return namespace.Labels, true
}

// explainPod tells what the pod says.
func explainPod(pod *corev1.Pod, byDefault, known bool, e *explanation) (webhook.Decision, error) {
	value, asked := pod.Annotations[v1alpha1.InjectAnnotation]
	if asked {
		e.add("annotation", "%s is %q", v1alpha1.InjectAnnotation, value)
	} else {
		e.add("annotation", "there is no %s", v1alpha1.InjectAnnotation)
	}
	decision, refusal := webhook.Decide(pod, byDefault)
	if refusal == nil && excluded(pod.Namespace) {
		decision = webhook.Decision{Reason: "excluded namespace"}
	}
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

// conclude says what is so and what to do.
func conclude(pod *corev1.Pod, decision webhook.Decision, refusal error, calls calling, owner owner) (verdict, advice string) {
	has := brokerOf(pod) != nil
	restart := "Create it anew."
	if w, can := owner.workload(); can {
		restart = fmt.Sprintf("Restart it: %s restart %s -n %s", name, w, pod.Namespace)
	}
	switch {
	case has && refusal == nil && decision.Inject && !started(pod) && !ended(pod):
		return "has a broker, as it should, which has not started yet.", ""
	case has && refusal == nil && decision.Inject:
		return "has a broker, as it should.", ""
	case has:
		return "has a broker, though it would get none now.", "The annotation, the label or what is left out has changed since. " + restart
	case refusal != nil:
		var problems *webhook.Refusal
		errors.As(refusal, &problems)
		return "has no broker, and asks for one in a way that is refused.", "Correct the annotation. " + restart
	case !decision.Inject:
		return "has no broker, as it should.", wish(decision.Reason)
	case calls.known && !calls.installed:
		return "has no broker, though it asks for one.", "The operator is not installed: there is neither its webhook nor its policies."
	case calls.known && !calls.covers:
		return "has no broker, though it asks for one.", "The operator does not inject into this namespace: see webhook.excludedNamespaces of the chart."
	case calls.broken != "":
		return "has no broker, though it should have one.", "A restart would not bring it now: " + calls.broken
	case calls.known && pod.CreationTimestamp.Before(&calls.since):
		return "has no broker, though it should have one.", fmt.Sprintf("It was created at %s, before the operator was installed. %s", pod.CreationTimestamp.UTC().Format(timeFormat), restart)
	default:
		return "has no broker, though it should have one.", fmt.Sprintf("It was created at %s, while %s, or before the annotation or the label was there. %s",
			pod.CreationTimestamp.UTC().Format(timeFormat), calls.without(), restart)
	}
}

// wish says how a pod gets a broker that has none for this reason.
func wish(reason string) string {
	switch reason {
	case "declined", "not asked":
		return fmt.Sprintf("To get one, it needs the annotation %s: \"true\" when it is created (in a Deployment: on its template).", v1alpha1.InjectAnnotation)
	default:
		return ""
	}
}
