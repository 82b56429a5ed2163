// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"regexp"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/text"
)

// calledAt matches the operator's service in a message of an API server that could not call it.
var calledAt = regexp.MustCompile(`https://([a-z0-9-]+)\.([a-z0-9-]+)\.svc[:/]`)

// serviceIn returns the service that an error of the API server names, or nil. So a user who may
// not read webhooks can find the operator.
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
	d, err := installation.Behind(ctx, client, service)
	if d == nil || err != nil {
		return fmt.Sprintf("The operator does not answer the API server. Look at it, or ask somebody who may look at it: %s", look) + after
	}
	e.add("operator", "deployment/%s in namespace %s: %d of %s available", d.Name, d.Namespace, d.Status.AvailableReplicas, text.Count(int(installation.Replicas(d)), "replica is", "replicas are"))
	if why := installation.Hindrance(d); why != "" {
		return why + after
	}
	return fmt.Sprintf("The operator runs, and the API server does not reach the service %s in namespace %s: the network, a NetworkPolicy or a port is in the way, see the README of the chart.", service.Name, service.Namespace)
}
