// SPDX-License-Identifier: Apache-2.0

// Package effective finds out which profiles take effect in a namespace, which of them brokers
// serve, and which the guard against weaker profiles withholds. It uses the code of the operator,
// so it is right if both have the same version. It does not know the minimum strength that the
// operator requires.
package effective

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/text"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// Set has the objects that apply to one namespace, and the set that is served there.
type Set struct {
	Namespace *corev1.Namespace
	// Namespaced are the profiles of the namespace, and Cluster all of the cluster.
	Namespaced []v1alpha1.CryptoProfile
	Cluster    []v1alpha1.ClusterCryptoProfile
	// ConfigMap has the set that brokers should serve. It is nil if there is none.
	ConfigMap *corev1.ConfigMap
	// Served has the profiles that the namespace serves and has served, from the ConfigMap.
	Served downgrade.State
	// Rendered is the result of rendering the resources, before the guard withholds anything.
	Rendered  render.Result
	Judgement downgrade.Judgement
}

// Read reads the objects and the set of a namespace.
func Read(ctx context.Context, client kubernetes.Interface, namespace string) (*Set, error) {
	s := &Set{}
	var err error
	if s.Namespace, err = client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{}); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("there is no namespace %q", namespace)
		}
		return nil, err
	}
	if s.Namespaced, err = NamespacedProfiles(ctx, client, namespace); err != nil {
		return nil, err
	}
	if s.Cluster, err = ClusterProfiles(ctx, client); err != nil {
		return nil, err
	}
	found, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, v1alpha1.ProfilesConfigMap, metav1.GetOptions{})
	switch {
	case err == nil:
		s.ConfigMap = found
	case !apierrors.IsNotFound(err):
		return nil, err
	}
	s.judge()
	return s, nil
}

// judge computes the remaining fields from the fields that were read.
func (s *Set) judge() {
	s.Rendered = render.Effective(s.Namespaced, s.Cluster, s.Namespace)
	if s.ConfigMap != nil {
		// Annotations that cannot be read count as missing, as for the operator.
		s.Served, _ = downgrade.Read(s.ConfigMap.Data[profile.FileName], s.ConfigMap.Annotations, s.Rendered)
	}
	candidates := downgrade.Candidates(s.Namespace.Name, s.Rendered.Parts, s.Namespaced, s.Cluster)
	s.Judgement = s.Served.Judge(candidates, 0)
}

// list reads all objects at a path of this project's group, in pages.
func list[T any](ctx context.Context, client kubernetes.Interface, path ...string) (all []T, err error) {
	segments := append([]string{"/apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version}, path...)
	for next := ""; ; {
		raw, err := apierror.Body(client.CoreV1().RESTClient().Get().AbsPath(segments...).
			Param("limit", fmt.Sprint(installation.Page)).Param("continue", next).Do(ctx))
		if resource := path[len(path)-1]; apierrors.IsNotFound(err) { // a list of nothing is found
			return nil, fmt.Errorf("the API server has no resource %s.%s: is the operator installed? %s check says more", resource, v1alpha1.GroupVersion.Group, text.Plugin)
		}
		if err != nil {
			return nil, err
		}
		var page struct {
			metav1.ListMeta `json:"metadata"`
			Items           []T `json:"items"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, fmt.Errorf("the list of %s cannot be read: %w", path[len(path)-1], err)
		}
		all = append(all, page.Items...)
		if next = page.Continue; next == "" {
			return all, nil
		}
	}
}

// NamespacedProfiles returns the CryptoProfiles of a namespace, or of all namespaces if namespace
// is empty.
func NamespacedProfiles(ctx context.Context, client kubernetes.Interface, namespace string) ([]v1alpha1.CryptoProfile, error) {
	if namespace == "" {
		return list[v1alpha1.CryptoProfile](ctx, client, "cryptoprofiles")
	}
	return list[v1alpha1.CryptoProfile](ctx, client, "namespaces", namespace, "cryptoprofiles")
}

// ClusterProfiles returns all ClusterCryptoProfiles.
func ClusterProfiles(ctx context.Context, client kubernetes.Interface) ([]v1alpha1.ClusterCryptoProfile, error) {
	return list[v1alpha1.ClusterCryptoProfile](ctx, client, "clustercryptoprofiles")
}

// ReadAll reads every namespace that has a set of profiles, as Read does.
func ReadAll(ctx context.Context, client kubernetes.Interface) (all []*Set, err error) {
	namespaced, err := NamespacedProfiles(ctx, client, "")
	if err != nil {
		return nil, err
	}
	byNamespace := map[string][]v1alpha1.CryptoProfile{}
	for _, p := range namespaced {
		byNamespace[p.Namespace] = append(byNamespace[p.Namespace], p)
	}
	cluster, err := ClusterProfiles(ctx, client)
	if err != nil {
		return nil, err
	}
	namespaces := map[string]*corev1.Namespace{}
	for next := ""; ; {
		page, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: installation.Page, Continue: next})
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			namespaces[page.Items[i].Name] = &page.Items[i]
		}
		if next = page.Continue; next == "" {
			break
		}
	}
	for next := ""; ; {
		page, err := client.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{
			FieldSelector: "metadata.name=" + v1alpha1.ProfilesConfigMap, Limit: pageOfSets, Continue: next,
		})
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			found := &page.Items[i]
			if namespaces[found.Namespace] == nil { // deleted meanwhile
				continue
			}
			s := &Set{Namespace: namespaces[found.Namespace], Namespaced: byNamespace[found.Namespace], Cluster: cluster, ConfigMap: found}
			s.judge()
			all = append(all, s)
		}
		if next = page.Continue; next == "" {
			break
		}
	}
	slices.SortFunc(all, func(a, b *Set) int { return cmp.Compare(a.Namespace.Name, b.Namespace.Name) })
	return all, nil
}

// pageOfSets is the number of ConfigMaps that are read at a time, each of up to 1 MiB.
const pageOfSets = 20

// Digest returns the digest and the revision of the set that the brokers of the namespace should
// serve. The digest is empty if there is no set. The revision is 0 if it is not known. Digest
// verifies no signature.
func (s *Set) Digest() (digest string, revision int64) {
	if s.ConfigMap == nil {
		return "", 0
	}
	file, is := s.ConfigMap.Data[profile.FileName]
	if !is {
		return "", 0
	}
	if statement, _, err := signed.Read([]byte(s.ConfigMap.Data[signed.FileName])); err == nil {
		revision = statement.Revision
	}
	return profile.Digest([]byte(file)), revision
}

// Names returns the objects that describe profiles, as kubectl names them: the profiles of a
// namespace and of the cluster.
func Names(ctx context.Context, client kubernetes.Interface, namespace string) (names []string, err error) {
	namespaced, err := list[metav1.PartialObjectMetadata](ctx, client, "namespaces", namespace, "cryptoprofiles")
	for i := range namespaced {
		names = append(names, "cprof/"+namespaced[i].Name)
	}
	cluster, clusterErr := list[metav1.PartialObjectMetadata](ctx, client, "clustercryptoprofiles")
	for i := range cluster {
		names = append(names, "ccprof/"+cluster[i].Name)
	}
	if len(names) > 0 {
		return names, nil
	}
	return nil, cmp.Or(err, clusterErr)
}
