// SPDX-License-Identifier: Apache-2.0

// Package coverage finds out into which namespaces the operator injects: the namespaces that its
// webhook or one of its policies selects.
package coverage

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

// ExcludedNamespace is the reason why a pod of an excluded namespace gets no broker.
const ExcludedNamespace = "excluded namespace"

// Excluded reports whether brokers are never injected into a namespace, in any installation.
func Excluded(namespace string) bool {
	return contract.IsExcluded(namespace)
}

// Reach tells into which namespaces brokers are injected: the namespaces that a webhook or a
// policy of the operator selects. It reads webhooks and policies once, when it is first asked.
type Reach struct {
	// namespaces are the known labels of namespaces.
	namespaces map[string]labels.Set
	// webhooks and policies are their selectors of namespaces.
	webhooks, policies func() ([]*metav1.LabelSelector, error)
	known              map[string]bool
}

// NewReach returns a Reach that has read nothing yet. namespaces are the known labels of
// namespaces.
func NewReach(ctx context.Context, client kubernetes.Interface, namespaces map[string]labels.Set) *Reach {
	return &Reach{
		namespaces: namespaces,
		webhooks: sync.OnceValues(func() (selectors []*metav1.LabelSelector, err error) {
			webhooks, err := InjectingWebhooks(ctx, client)
			for _, w := range webhooks {
				selectors = append(selectors, w.NamespaceSelector)
			}
			return selectors, err
		}),
		policies: sync.OnceValues(func() (selectors []*metav1.LabelSelector, err error) {
			policies, err := InjectingPolicies(ctx, client)
			if apierrors.IsNotFound(err) {
				return nil, nil
			}
			for _, policy := range policies {
				selectors = append(selectors, NamespacesOf(policy))
			}
			return selectors, err
		}),
		known: map[string]bool{},
	}
}

// LeavesOut reports whether no pod of a namespace gets a broker although pods of other
// namespaces do. If nothing is installed, no namespace is left out. The error says why
// it is not known. If the labels of the namespace are not known, it returns false.
func (r *Reach) LeavesOut(namespace string) (bool, error) {
	if left, known := r.known[namespace]; known {
		return left, nil
	}
	left, err := r.look(namespace)
	if err == nil {
		r.known[namespace] = left
	}
	return left, err
}

func (r *Reach) look(namespace string) (bool, error) {
	set, known := r.namespaces[namespace]
	switch {
	case Excluded(namespace):
		return true, nil
	case !known:
		return false, nil
	}
	covers := func(selector *metav1.LabelSelector) bool { return Selects(selector, set) }
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
