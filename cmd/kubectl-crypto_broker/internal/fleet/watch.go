// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
)

// watches follow the objects of the page.
type watches struct {
	informers []cache.Controller
	// pods has a store for each namespace of the scope, where an empty name stands for all.
	pods       map[string]cache.Store
	podsRead   []func() bool
	namespaced []cache.Store
	cluster    cache.Store

	mu     sync.Mutex
	failed map[string]string // why a resource can't be read
}

// newWatches prepares to follow objects of namespaces, where an empty name stands for all. They
// call a function after each change of profiles, and another one after each change of pods.
func newWatches(config *rest.Config, client kubernetes.Interface, namespaces []string, profilesChanged, podsChanged func()) (*watches, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(scheme, v1alpha1.GroupVersion)
	own := rest.CopyConfig(config)
	own.APIPath, own.GroupVersion = "/apis", &v1alpha1.GroupVersion
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	profiles, err := rest.RESTClientFor(own)
	if err != nil {
		return nil, err
	}
	w := &watches{pods: map[string]cache.Store{}, failed: map[string]string{}}
	follow := func(client cache.Getter, resource, namespace string, kind runtime.Object, transform cache.TransformFunc, changed func()) cache.Store {
		store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
			ListerWatcher: w.noting(cache.NewListWatchFromClient(client, resource, namespace, fields.Everything()), resource, namespace, changed),
			ObjectType:    kind, Transform: transform,
			Handler: cache.ResourceEventHandlerFuncs{
				AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
			},
		})
		w.informers = append(w.informers, informer)
		return store
	}
	for _, namespace := range namespaces {
		w.namespaced = append(w.namespaced, follow(profiles, "cryptoprofiles", namespace, &v1alpha1.CryptoProfile{}, withoutManagedFields, profilesChanged))
		w.pods[namespace] = follow(client.CoreV1().RESTClient(), "pods", namespace, &corev1.Pod{}, smallPod, podsChanged)
		w.podsRead = append(w.podsRead, w.informers[len(w.informers)-1].HasSynced)
	}
	w.cluster = follow(profiles, "clustercryptoprofiles", "", &v1alpha1.ClusterCryptoProfile{}, withoutManagedFields, profilesChanged)
	return w, nil
}

// noting returns a ListWatch that records a note while a resource cannot be read.
func (w *watches) noting(inner *cache.ListWatch, resource, namespace string, changed func()) cache.ListerWatcher {
	what := resource
	if namespace != "" {
		what += " of namespace " + namespace
	}
	note := func(err error) {
		w.mu.Lock()
		before := w.failed[what]
		delete(w.failed, what)
		if err != nil {
			w.failed[what] = fmt.Sprintf("The %s can't be seen: %s.", what, apierror.OneLine(apierror.Plain(err)))
		}
		after := w.failed[what]
		w.mu.Unlock()
		if before != after {
			changed()
		}
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := inner.ListWithContext(ctx, options)
			note(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := inner.WatchWithContext(ctx, options)
			note(err)
			return events, err
		},
	}
}

// run follows the objects until the context ends.
func (w *watches) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, informer := range w.informers {
		all.Go(func() { informer.RunWithContext(ctx) })
	}
	all.Wait()
}

// podsAreRead reports whether the pods of all namespaces have been read once.
func (w *watches) podsAreRead() bool {
	return !slices.ContainsFunc(w.podsRead, func(read func() bool) bool { return !read() })
}

// notes returns sentences about resources that cannot be read.
func (w *watches) notes() (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, note := range w.failed {
		all = append(all, note)
	}
	slices.Sort(all)
	return all
}

// objects returns all profiles in the order of their names.
func (w *watches) objects() (all []object) {
	for _, store := range w.namespaced {
		for _, found := range store.List() {
			all = append(all, namespacedObject(found.(*v1alpha1.CryptoProfile)))
		}
	}
	for _, found := range w.cluster.List() {
		all = append(all, clusterObject(found.(*v1alpha1.ClusterCryptoProfile)))
	}
	slices.SortFunc(all, func(a, b object) int {
		return cmp.Or(cmp.Compare(a.source.Namespace, b.source.Namespace), cmp.Compare(a.source.Name, b.source.Name))
	})
	return all
}

// withoutManagedFields drops fields that take memory and that nothing reads.
func withoutManagedFields(found any) (any, error) {
	if object, is := found.(metav1.Object); is {
		object.SetManagedFields(nil)
	}
	return found, nil
}

// smallPod drops fields that take memory and that package brokers does not read, because there
// may be many thousands of pods. The annotation with the profile file may have 16 KiB.
func smallPod(found any) (any, error) {
	if pod, is := found.(*corev1.Pod); is {
		delete(pod.Annotations, contract.ProfilesSnapshotAnnotation)
		delete(pod.Annotations, contract.ProfilesSnapshotSignatureAnnotation)
		pod.Spec.Volumes, pod.Spec.Containers, pod.Status.ContainerStatuses = nil, nil, nil
	}
	return withoutManagedFields(found)
}
