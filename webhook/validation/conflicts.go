// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// maxConflicts is the maximum number of conflicts that a response lists; kubectl prints a line
// for each.
const maxConflicts = 5

// conflicts finds profiles that are valid but will have no effect. It reads only the profiles of
// the same name.
type conflicts struct {
	// reader reads from a cache with the index profileNameIndex.
	reader client.Reader
}

// ofNamespaced asks the renderer which object the name belongs to in the namespace, and whether
// the set has room. before is the object before the request, or nil for a new object.
func (c *conflicts) ofNamespaced(ctx context.Context, before, object *v1alpha1.CryptoProfile) ([]string, error) {
	namespace := &corev1.Namespace{}
	if err := c.reader.Get(ctx, client.ObjectKey{Name: object.Namespace}, namespace); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the namespace %q: %w", object.Namespace, err)
	}
	namespace.Name = object.Namespace // the cache may not have a new namespace yet
	namespaced, cluster, err := c.named(ctx, profileName(object)[0], object.Namespace)
	if err != nil {
		return nil, err
	}
	objects := []v1alpha1.CryptoProfile{*asCreated(object.DeepCopy())}
	for _, other := range namespaced {
		if other.Name != object.Name {
			objects = append(objects, other)
		}
	}
	if verdict := render.Effective(objects, cluster, namespace).Namespaced[object.Name]; !verdict.Accepted {
		return []string{"the profile is valid and will not be served: " + verdict.Message}, nil
	}
	return c.room(ctx, before, object)
}

// named lists the profiles of one name, in one namespace or in all. The caller must not
// change them, because they are the objects of the cache.
func (c *conflicts) named(ctx context.Context, name, namespace string) ([]v1alpha1.CryptoProfile, []v1alpha1.ClusterCryptoProfile, error) {
	var namespaced v1alpha1.CryptoProfileList
	var cluster v1alpha1.ClusterCryptoProfileList
	same := client.MatchingFields{profileNameIndex: name}
	if err := c.reader.List(ctx, &namespaced, same, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list the CryptoProfiles with the profile name %q: %w", name, err)
	}
	if err := c.reader.List(ctx, &cluster, same, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list the ClusterCryptoProfiles with the profile name %q: %w", name, err)
	}
	return namespaced.Items, cluster.Items, nil
}

// room warns if the namespace's set would be too large with the change. It does not find out
// which profiles would be left out, which would need all profiles. The condition Accepted of each
// profile shows that.
func (c *conflicts) room(ctx context.Context, before, object *v1alpha1.CryptoProfile) ([]string, error) {
	set := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: object.Namespace, Name: v1alpha1.ProfilesConfigMap}
	if err := c.reader.Get(ctx, key, set); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the ConfigMap %s: %w", key, err)
	}
	size, err := render.Size(object.Name, &object.Spec)
	if err != nil {
		return nil, err
	}
	size += len(set.Data[profile.FileName])
	if before != nil && meta.IsStatusConditionTrue(before.Status.Conditions, v1alpha1.ConditionAccepted) {
		old, err := render.Size(before.Name, &before.Spec)
		if err != nil {
			return nil, err
		}
		size -= old
	}
	if size <= render.MaxSetSize {
		return nil, nil
	}
	return []string{fmt.Sprintf("the profile is valid and may not be served: with it the profiles of the namespace take %d bytes, and a set has at most %d; "+
		"ClusterCryptoProfiles and older CryptoProfiles count first, and the condition Accepted of each profile says whether it is left out", size, render.MaxSetSize)}, nil
}

// first returns the first sentences, and a sentence with the number of the others.
func first(found []string) []string {
	if more := len(found) - maxConflicts; more > 0 {
		return append(found[:maxConflicts], fmt.Sprintf("and %d more conflicts of this kind; the condition Accepted of each object says which", more))
	}
	return found
}

// ofCluster compares only names, because rendering every selected namespace would take longer
// than a request may.
func (c *conflicts) ofCluster(ctx context.Context, _, object *v1alpha1.ClusterCryptoProfile) ([]string, error) {
	object = asCreated(object.DeepCopy())
	name := profileName(object)[0]
	namespaced, cluster, err := c.named(ctx, name, metav1.NamespaceAll)
	if err != nil {
		return nil, err
	}
	cluster = slices.DeleteFunc(slices.Clone(cluster), func(other v1alpha1.ClusterCryptoProfile) bool { return other.Name == object.Name })
	if len(namespaced)+len(cluster) == 0 {
		return nil, nil
	}
	var namespaces corev1.NamespaceList
	if err := c.reader.List(ctx, &namespaces, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the namespaces: %w", err)
	}
	selected := map[string]*corev1.Namespace{}
	selector := render.Selector(&object.Spec)
	for i := range namespaces.Items {
		if namespace := &namespaces.Items[i]; selector.Matches(labels.Set(namespace.Labels)) {
			selected[namespace.Name] = namespace
		}
	}

	var found []string
	for i := range cluster {
		other := &cluster[i]
		shared, its := 0, render.Selector(&other.Spec)
		for _, namespace := range selected {
			if its.Matches(labels.Set(namespace.Labels)) {
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
	for i := range namespaced {
		if other := &namespaced[i]; selected[other.Namespace] != nil {
			found = append(found, fmt.Sprintf("CryptoProfile %q of namespace %q has the profile name %q too and will not be served: a ClusterCryptoProfile counts before it", other.Name, other.Namespace, name))
		}
	}
	return first(found), nil
}

// asCreated sets the creation time of an object that is not stored yet to now, because
// the oldest object has a name.
func asCreated[T client.Object](object T) T {
	if created := object.GetCreationTimestamp(); created.IsZero() {
		object.SetCreationTimestamp(metav1.NewTime(time.Now()))
	}
	return object
}

// isOlder reports whether an object precedes another one in the order of the renderer.
func isOlder(a, b *v1alpha1.ClusterCryptoProfile) bool {
	if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
		return order < 0
	}
	return a.Name < b.Name
}
