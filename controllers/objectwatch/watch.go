// SPDX-License-Identifier: Apache-2.0

// Package objectwatch reports changes of single objects in the API server, such as one
// Secret. It selects each object by name in the requests to list and watch, so that rights
// limited by resourceNames are enough. It keeps the data of Secrets out of memory.
package objectwatch

import (
	"context"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Watcher reports changes of its objects. It has its own cache.
type Watcher struct {
	cache   cache.Cache
	objects []client.Object
	running errgroup.Group
}

// New returns a watcher of objects of different types. Of each object it needs the type,
// the name and the namespace. It does not call the API server.
func New(cfg *rest.Config, scheme *runtime.Scheme, objects ...client.Object) (*Watcher, error) {
	selected := map[client.Object]cache.ByObject{}
	for _, object := range objects {
		byName := fields.OneTermEqualSelector("metadata.name", object.GetName())
		selection := cache.ByObject{Field: byName, Transform: withoutData}
		if namespace := object.GetNamespace(); namespace != "" {
			selection.Field, selection.Namespaces = nil, map[string]cache.Config{namespace: {FieldSelector: byName}}
		}
		selected[object] = selection
	}
	informers, err := cache.New(cfg, cache.Options{Scheme: scheme, ByObject: selected})
	if err != nil {
		return nil, err
	}
	return &Watcher{cache: informers, objects: objects}, nil
}

// withoutData removes the data of a Secret.
func withoutData(object any) (any, error) {
	if secret, ok := object.(*corev1.Secret); ok {
		secret.Data = nil
	}
	return object, nil
}

// Start watches until ctx ends. The returned channel gets a value after changes. Several
// changes may become one value.
func (w *Watcher) Start(ctx context.Context) (<-chan struct{}, error) {
	changes := make(chan struct{}, 1)
	changed := func() {
		select {
		case changes <- struct{}{}:
		default:
		}
	}
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		UpdateFunc: func(any, any) { changed() },
		DeleteFunc: func(any) { changed() },
	}
	for _, object := range w.objects {
		informer, err := w.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, err
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, err
		}
	}
	w.running.Go(func() error { return w.cache.Start(ctx) })
	return changes, nil
}

// Wait returns after everything that Start began has ended.
func (w *Watcher) Wait() error { return w.running.Wait() }
