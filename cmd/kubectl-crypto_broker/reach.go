// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// excludedNamespace is the reason why a pod of one gets no broker.
const excludedNamespace = "excluded namespace"

// excluded tells the namespaces that are never injected into, whatever is
// installed.
func excluded(namespace string) bool {
	return contract.IsExcluded(namespace)
}

// reach tells into which namespaces brokers are injected: those that a webhook or
// a policy of the operator selects. It is read once, and only if it is asked for.
type reach struct {
	// namespaces are their labels, as far as they are known.
	namespaces map[string]labels.Set
	// webhooks and policies are what these select namespaces by.
	webhooks, policies func() ([]*metav1.LabelSelector, error)
	known              map[string]bool
}

func newReach(ctx context.Context, client kubernetes.Interface, namespaces map[string]labels.Set) *reach {
	return &reach{
		namespaces: namespaces,
		webhooks: sync.OnceValues(func() (selectors []*metav1.LabelSelector, err error) {
			webhooks, err := injectingWebhooks(ctx, client)
			for _, w := range webhooks {
				selectors = append(selectors, w.NamespaceSelector)
			}
			return selectors, err
		}),
		policies: sync.OnceValues(func() (selectors []*metav1.LabelSelector, err error) {
			policies, err := injectingPolicies(ctx, client)
			if apierrors.IsNotFound(err) {
				return nil, nil
			}
			for _, policy := range policies {
				selectors = append(selectors, namespacesOf(policy))
			}
			return selectors, err
		}),
		known: map[string]bool{},
	}
}

// leavesOut tells whether no pod of a namespace gets a broker, while those of
// others do: where nothing is installed, none is left out. The error says why it is
// not known. That the labels of the namespace are not is for others to tell.
func (r *reach) leavesOut(namespace string) (bool, error) {
	if left, known := r.known[namespace]; known {
		return left, nil
	}
	left, err := r.look(namespace)
	if err == nil {
		r.known[namespace] = left
	}
	return left, err
}

func (r *reach) look(namespace string) (bool, error) {
	set, known := r.namespaces[namespace]
	switch {
	case excluded(namespace):
		return true, nil
	case !known:
		return false, nil
	}
	covers := func(selector *metav1.LabelSelector) bool { return selects(selector, set) }
	webhooks, err := r.webhooks()
	if err != nil || slices.ContainsFunc(webhooks, covers) {
		return false, err
	}
	policies, err := r.policies()
	if err != nil || slices.ContainsFunc(policies, covers) {
		return false, err
	}
	return len(webhooks)+len(policies) > 0, nil
}

// doubt is a note about pods that should perhaps not be listed, since it is not
// known whether their namespace is left out; empty if there is none.
func doubt(rows []row) string {
	for _, r := range rows {
		if r.doubt != "" && (r.Broker == brokerMissing || r.Broker == brokerOutdated) {
			return "which namespaces are left out is not known, so pods may be listed that no restart gives a broker: " + r.doubt
		}
	}
	return ""
}
