// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"regexp"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
)

// uncalled matches the API server's message when it cannot call the operator.
var uncalled = regexp.MustCompile(`failed calling webhook "[a-z]+\.inject\.cryptobroker\.io"`)

// calledAt finds the operator's service in such a message.
var calledAt = regexp.MustCompile(`https://([a-z0-9-]+)\.([a-z0-9-]+)\.svc[:/]`)

// serviceIn returns the service that an error of the API server names, nil if it names
// none. A user who may not read webhooks finds the operator this way.
func serviceIn(refusal string) *admissionregistrationv1.ServiceReference {
	found := calledAt.FindStringSubmatch(refusal)
	if found == nil {
		return nil
	}
	return &admissionregistrationv1.ServiceReference{Name: found[1], Namespace: found[2]}
}

// explainOperator explains why the API server cannot call the operator, by the
// operator's Deployment if the user may read it, and says what to do.
func explainOperator(ctx context.Context, client kubernetes.Interface, service *admissionregistrationv1.ServiceReference, e *explanation) (advice string) {
	const after = "\nSoon after it answers, pods that are refused now are created automatically."
	if service == nil {
		return "The operator does not answer the API server: look whether it runs, and what its log says." + after
	}
	look := fmt.Sprintf("kubectl get deployments,pods -n %s", service.Namespace)
	d := operatorBehind(ctx, client, service)
	if d == nil {
		return fmt.Sprintf("The operator does not answer the API server. Look at it, or ask who may: %s", look) + after
	}
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	e.add("operator", "deployment/%s in namespace %s: %d of %s available", d.Name, d.Namespace, d.Status.AvailableReplicas, count(int(want), "replica is", "replicas are"))
	switch {
	case want == 0:
		return fmt.Sprintf("The operator is scaled to no replica. Scale it: kubectl scale deployment/%s -n %s --replicas=2", d.Name, d.Namespace) + after
	case d.Status.AvailableReplicas == 0:
		return fmt.Sprintf("The operator does not run. See why: %s, and kubectl logs deployment/%s -n %s", look, d.Name, d.Namespace) + after
	default:
		return fmt.Sprintf("The operator runs, and the API server does not reach the service %s in namespace %s: the network, a NetworkPolicy or a port is in the way, see the README of the chart.", service.Name, service.Namespace)
	}
}

// operatorBehind returns the Deployment whose pods the service selects; nil if the
// user may not read it or there is none.
func operatorBehind(ctx context.Context, client kubernetes.Interface, reference *admissionregistrationv1.ServiceReference) *appsv1.Deployment {
	service, err := client.CoreV1().Services(reference.Namespace).Get(ctx, reference.Name, metav1.GetOptions{})
	if err != nil || len(service.Spec.Selector) == 0 {
		return nil
	}
	deployments, err := client.AppsV1().Deployments(reference.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	for i := range deployments.Items {
		if d := &deployments.Items[i]; labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(d.Spec.Template.Labels)) {
			return d
		}
	}
	return nil
}
