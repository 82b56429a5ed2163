// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// maxConflicts is how many conflicts a response lists; kubectl prints a line
// for each.
const maxConflicts = 5

// conflicts finds profiles that are valid and will not count.
type conflicts struct {
	reader client.Reader
}

// ofNamespaced asks the renderer what it would make of the namespace with the
// object in it.
func (c *conflicts) ofNamespaced(ctx context.Context, object *v1alpha1.CryptoProfile) ([]string, error) {
	namespace := &corev1.Namespace{}
	if err := c.reader.Get(ctx, client.ObjectKey{Name: object.Namespace}, namespace); err != nil {
		return nil, fmt.Errorf("read the namespace %q: %w", object.Namespace, err)
	}
	var namespaced v1alpha1.CryptoProfileList
	if err := c.reader.List(ctx, &namespaced, client.InNamespace(object.Namespace)); err != nil {
		return nil, fmt.Errorf("list the CryptoProfiles of namespace %q: %w", object.Namespace, err)
	}
	var cluster v1alpha1.ClusterCryptoProfileList
	if err := c.reader.List(ctx, &cluster); err != nil {
		return nil, fmt.Errorf("list the ClusterCryptoProfiles: %w", err)
	}
	objects := []v1alpha1.CryptoProfile{*asCreated(object.DeepCopy())}
	for _, other := range namespaced.Items {
		if other.Name != object.Name {
			objects = append(objects, other)
		}
	}
	verdicts := render.Effective(objects, cluster.Items, namespace).Namespaced
	var found []string
	if verdict := verdicts[object.Name]; !verdict.Accepted {
		found = append(found, "the profile is valid and will not be served: "+verdict.Message)
	}
	for _, other := range slices.Sorted(maps.Keys(verdicts)) {
		if other != object.Name && verdicts[other].Reason == v1alpha1.ReasonTooLarge {
			found = append(found, fmt.Sprintf("there is no room for CryptoProfile %q, which will not be served: %s", other, verdicts[other].Message))
		}
	}
	return first(found), nil
}

// first leaves of many sentences the first, and says how many there are more.
func first(found []string) []string {
	if more := len(found) - maxConflicts; more > 0 {
		return append(found[:maxConflicts], fmt.Sprintf("and %d more conflicts of this kind; the condition Accepted of each object tells", more))
	}
	return found
}

// ofCluster compares names only. To render every namespace that the object
// selects would take longer than a request may.
func (c *conflicts) ofCluster(ctx context.Context, object *v1alpha1.ClusterCryptoProfile) ([]string, error) {
	var namespaces corev1.NamespaceList
	if err := c.reader.List(ctx, &namespaces); err != nil {
		return nil, fmt.Errorf("list the namespaces: %w", err)
	}
	var namespaced v1alpha1.CryptoProfileList
	if err := c.reader.List(ctx, &namespaced); err != nil {
		return nil, fmt.Errorf("list the CryptoProfiles: %w", err)
	}
	var cluster v1alpha1.ClusterCryptoProfileList
	if err := c.reader.List(ctx, &cluster); err != nil {
		return nil, fmt.Errorf("list the ClusterCryptoProfiles: %w", err)
	}
	object = asCreated(object.DeepCopy())
	name := render.Name(object.Name, &object.Spec.ProfileSpec)
	selected := map[string]*corev1.Namespace{}
	for i := range namespaces.Items {
		if namespace := &namespaces.Items[i]; render.Selects(&object.Spec, namespace.Labels) {
			selected[namespace.Name] = namespace
		}
	}

	var found []string
	for i := range cluster.Items {
		other := &cluster.Items[i]
		if other.Name == object.Name || render.Name(other.Name, &other.Spec.ProfileSpec) != name {
			continue
		}
		shared := 0
		for _, namespace := range selected {
			if render.Selects(&other.Spec, namespace.Labels) {
				shared++
			}
		}
		switch {
		case shared == 0:
		case isOlder(object, other):
			found = append(found, fmt.Sprintf("the profile name %q belongs from now on to this object and no longer to ClusterCryptoProfile %q, in %d namespaces that both select", name, other.Name, shared))
		default:
			found = append(found, fmt.Sprintf("the profile name %q belongs to ClusterCryptoProfile %q, which is older, in %d namespaces that both select; there this profile will not be served", name, other.Name, shared))
		}
	}
	for i := range namespaced.Items {
		other := &namespaced.Items[i]
		if selected[other.Namespace] != nil && render.Name(other.Name, &other.Spec) == name {
			found = append(found, fmt.Sprintf("CryptoProfile %q of namespace %q has the profile name %q too and will not be served: a ClusterCryptoProfile counts before it", other.Name, other.Namespace, name))
		}
	}
	return first(found), nil
}

// asCreated gives an object that is not stored yet the time at which it will
// have been created: age decides who has a name.
func asCreated[T client.Object](object T) T {
	if created := object.GetCreationTimestamp(); created.IsZero() {
		object.SetCreationTimestamp(metav1.NewTime(time.Now()))
	}
	return object
}

// isOlder orders objects as the renderer does.
func isOlder(a, b *v1alpha1.ClusterCryptoProfile) bool {
	if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
		return order < 0
	}
	return a.Name < b.Name
}
