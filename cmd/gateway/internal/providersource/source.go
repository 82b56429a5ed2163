// SPDX-License-Identifier: Apache-2.0

package providersource

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// drainTime is how long a provider that was replaced serves calls that have begun. It is longer
// than calls of brokers may take.
const drainTime = 30 * time.Second

// Options of a source.
type Options struct {
	// Types are the types of providers that the program has.
	Types providers.Types
	// Objects lists and watches KeyProviders, ClusterKeyProviders and the metadata of
	// Namespaces. Its owner starts it.
	Objects cache.Cache
	// Secrets gets and watches single Secrets by their names. There is one request to watch for
	// each provider, so the client should not limit itself to a few requests a second.
	Secrets corev1client.SecretsGetter
	// OperatorNamespace has the Secrets of ClusterKeyProviders. It never has KeyProviders, as the
	// namespaces of Kubernetes.
	OperatorNamespace string
	Logger            *slog.Logger
}

// Source has the providers of all namespaces. It is safe for concurrent use.
type Source struct {
	options Options
	drained sync.WaitGroup
	// ended is closed once Run has ended.
	ended chan struct{}

	mu sync.RWMutex
	// read reports whether all objects have been read once.
	read       bool
	namespaces map[string]labels.Set
	// entries are the entries of KeyProviders. ClusterKeyProviders have an empty namespace.
	entries map[types.NamespacedName]*entry
}

// New returns a source, which has no provider before Run.
func New(options Options) *Source {
	return &Source{options: options, ended: make(chan struct{}), namespaces: map[string]labels.Set{}, entries: map[types.NamespacedName]*entry{}}
}

// Run follows the objects until ctx ends, and then closes all providers.
func (s *Source) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer s.close()
	defer stop()
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	var synced []toolscache.InformerSynced
	for _, followed := range []struct {
		object client.Object
		put    func(client.Object)
		remove func(types.NamespacedName)
	}{
		{namespace, s.putNamespace, s.removeNamespace},
		{&v1alpha1.KeyProvider{}, func(o client.Object) { s.put(ctx, o, &o.(*v1alpha1.KeyProvider).Spec, nil) }, s.remove},
		{&v1alpha1.ClusterKeyProvider{}, func(o client.Object) {
			spec := &o.(*v1alpha1.ClusterKeyProvider).Spec
			s.put(ctx, o, &spec.KeyProviderSpec, render.NamespaceSelector(spec.NamespaceSelector))
		}, s.remove},
	} {
		informer, err := s.options.Objects.GetInformer(ctx, followed.object)
		if err != nil {
			return fmt.Errorf("follow %T: %w", followed.object, err)
		}
		registration, err := informer.AddEventHandler(handler(followed.put, followed.remove))
		if err != nil {
			return fmt.Errorf("follow %T: %w", followed.object, err)
		}
		defer func() { _ = informer.RemoveEventHandler(registration) }()
		synced = append(synced, registration.HasSynced)
	}
	if toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		s.mu.Lock()
		s.read = true
		s.mu.Unlock()
		<-ctx.Done()
	}
	return nil
}

// handler calls put for each new or changed object, and remove for each deleted object.
func handler(put func(client.Object), remove func(types.NamespacedName)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { put(o.(client.Object)) },
		UpdateFunc: func(_, o any) { put(o.(client.Object)) },
		DeleteFunc: func(o any) {
			if unknown, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = unknown.Obj
			}
			remove(client.ObjectKeyFromObject(o.(client.Object)))
		},
	}
}

func (s *Source) putNamespace(object client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.namespaces[object.GetName()] = object.GetLabels()
}

func (s *Source) removeNamespace(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.namespaces, key.Name)
}

func (s *Source) put(ctx context.Context, object client.Object, spec *v1alpha1.KeyProviderSpec, selector labels.Selector) {
	key := client.ObjectKeyFromObject(object)
	s.mu.Lock()
	e := s.entries[key]
	if e == nil {
		e = newEntry(s, key)
		s.entries[key] = e
	}
	e.selector = selector
	s.mu.Unlock()
	e.update(ctx, version{object.GetUID(), object.GetGeneration()}, spec)
}

func (s *Source) remove(key types.NamespacedName) {
	s.mu.Lock()
	e := s.entries[key]
	delete(s.entries, key)
	s.mu.Unlock()
	if e != nil {
		e.close("the key provider was deleted")
	}
}

// close closes all providers at once.
func (s *Source) close() {
	s.mu.Lock()
	all := s.entries
	s.entries, s.read = map[types.NamespacedName]*entry{}, false
	s.mu.Unlock()
	close(s.ended)
	for _, e := range all {
		e.close("the key gateway ends")
	}
	s.drained.Wait()
}

// drain closes a provider after the calls that have begun have had time to end.
func (s *Source) drain(provider providers.Provider) {
	s.drained.Go(func() {
		select {
		case <-time.After(drainTime):
		case <-s.ended:
		}
		provider.Close()
	})
}

// find returns the provider with a name in a namespace, or nil.
func (s *Source) find(namespace, name string) (*entry, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	set, known := s.namespaces[namespace]
	switch {
	case contract.IsExcluded(namespace, s.options.OperatorNamespace):
		return nil, nil
	case !s.read || !known:
		return nil, fmt.Errorf("%w: the key gateway does not know yet which key providers the namespace %q has", keys.ErrUnavailable, namespace)
	}
	if e := s.entries[types.NamespacedName{Name: name}]; e != nil && e.selector.Matches(set) {
		return e, nil
	}
	return s.entries[types.NamespacedName{Namespace: namespace, Name: name}], nil
}

// For returns the provider of all keys that a namespace may use, by ids <provider>/<id>. The use
// of a key names the profile, which the key provider has to allow. For is cheap.
func (s *Source) For(namespace string) keys.Provider { return view{s, namespace} }

type view struct {
	source    *Source
	namespace string
}

// Key implements keys.Provider.
func (v view) Key(ctx context.Context, name keys.Name) (*keys.Key, error) {
	provider, id := keys.SplitID(name.ID)
	if provider == "" {
		return nil, &keys.NoProviderError{}
	}
	e, err := v.source.find(v.namespace, provider)
	switch {
	case err != nil:
		return nil, err
	case e == nil:
		return nil, &keys.NoProviderError{Provider: provider}
	}
	now := e.now.Load()
	switch {
	case !render.MayUse(now.spec, name.Use.Profile):
		return nil, fmt.Errorf("%w: the key provider %q does not allow the profile %q", keys.ErrDenied, provider, name.Use.Profile)
	case now.provider == nil:
		return nil, fmt.Errorf("%w: the key provider %q cannot be used: %s", keys.ErrUnavailable, provider, now.problem)
	}
	return now.provider.Key(ctx, name.At(id))
}
