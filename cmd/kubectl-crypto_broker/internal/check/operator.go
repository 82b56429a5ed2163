// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
)

// replicas checks that the operator runs.
func (c *Checker) replicas(context.Context) (State, string) {
	o, d := c.operator, c.operator.Deployment
	switch {
	case o.DeploymentUnknown != nil:
		return cannotTell("whether the operator runs", o.DeploymentUnknown)
	case d == nil:
		return Failed, fmt.Sprintf("namespace %s has no Deployment of the operator: install the chart, or name the operator's namespace by --operator-namespace", o.Namespace)
	}
	found := fmt.Sprintf("deployment/%s in namespace %s has %d of %d replicas available, image %s", d.Name, d.Namespace, d.Status.AvailableReplicas, installation.Replicas(d), o.Image())
	if why := installation.Hindrance(d); why != "" {
		return Failed, found + ". " + why
	}
	want := installation.Replicas(d)
	switch {
	case d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas < want:
		return Warning, fmt.Sprintf("%s; its rollout goes on: kubectl rollout status deployment/%s -n %s", found, d.Name, d.Namespace)
	case d.Status.AvailableReplicas < want:
		return Warning, fmt.Sprintf("%s: kubectl get pods -n %s shows which one is not", found, d.Namespace)
	default:
		return OK, found
	}
}

const (
	// leasePause is the time between two reads of the Lease.
	leasePause = 500 * time.Millisecond
	// longestLease is an upper bound for the duration that a Lease claims.
	longestLease = time.Minute
)

// leader checks that a replica holds the Lease and renews it. It waits until the Lease changes,
// because the clocks of the user and of the operator may differ.
func (c *Checker) leader(ctx context.Context) (State, string) {
	leases := c.Client.CoordinationV1().Leases(c.operator.Namespace)
	first, err := leases.Get(ctx, v1alpha1.LeaderElectionLease, metav1.GetOptions{})
	log := fmt.Sprintf("profiles do not reach brokers until there is one; the operator's log says more: kubectl logs -n %s -l app.kubernetes.io/part-of=crypto-broker --prefix", c.operator.Namespace)
	switch {
	case apierrors.IsNotFound(err):
		return Failed, fmt.Sprintf("no replica is the leader: there is no Lease %s in namespace %s; %s", v1alpha1.LeaderElectionLease, c.operator.Namespace, log)
	case err != nil:
		return cannotTell("whether there is a leader", err)
	case holder(first) == "":
		return Failed, fmt.Sprintf("no replica is the leader: nobody holds the Lease %s in namespace %s; %s", first.Name, first.Namespace, log)
	}
	lasts := 15 * time.Second
	if seconds := first.Spec.LeaseDurationSeconds; seconds != nil {
		lasts = min(time.Duration(*seconds)*time.Second, longestLease)
	}
	for deadline := time.Now().Add(lasts); time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
			return cannotTell("whether there is a leader", ctx.Err())
		case <-time.After(leasePause):
		}
		now, err := leases.Get(ctx, first.Name, metav1.GetOptions{})
		switch {
		case err != nil:
			return cannotTell("whether there is a leader", err)
		case now.ResourceVersion != first.ResourceVersion && holder(now) != "":
			return OK, fmt.Sprintf("%s holds the Lease %s and renews it", holder(now), now.Name)
		}
	}
	return Failed, fmt.Sprintf("no replica is the leader: %s has not renewed the Lease %s for %s; %s", holder(first), first.Name, lasts, log)
}

func holder(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// service checks that the Service that the API server calls has ready endpoints.
func (c *Checker) service(ctx context.Context) (State, string) {
	service := c.operator.Service
	if service == nil {
		if c.operator.WebhooksUnknown != nil {
			return cannotTell("which Service the API server calls", c.operator.WebhooksUnknown)
		}
		return Failed, "no webhook names a Service of the operator: helm upgrade restores the webhook configurations"
	}
	slices, err := c.Client.DiscoveryV1().EndpointSlices(service.Namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service.Name})
	if err != nil {
		return cannotTell("whether the Service "+service.Name+" has endpoints", err)
	}
	ready := 0
	for i := range slices.Items {
		for _, endpoint := range slices.Items[i].Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				ready += len(endpoint.Addresses)
			}
		}
	}
	if ready == 0 {
		return Failed, fmt.Sprintf("the Service %s in namespace %s has no ready endpoint, so the API server cannot call the operator: kubectl get endpointslices,pods -n %s", service.Name, service.Namespace, service.Namespace)
	}
	return OK, fmt.Sprintf("the Service %s in namespace %s has ready endpoints: %d", service.Name, service.Namespace, ready)
}
