// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watcher reports changes of the three objects.
type watcher interface {
	// start begins to watch until ctx ends and returns a channel that gets a
	// value after changes; several may become one.
	start(ctx context.Context) (<-chan struct{}, error)
	// wait returns after everything that start began has ended.
	wait() error
}

// objectWatcher watches with its own cache, which holds the two configurations and the
// metadata of the Secret.
type objectWatcher struct {
	cache   cache.Cache
	watched []client.Object
	running errgroup.Group
}

// newWatcher selects each object by name in the requests to list and watch, so that
// rights limited by resourceNames are enough.
func newWatcher(cfg *rest.Config, scheme *runtime.Scheme, options Options) (*objectWatcher, error) {
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	objects := map[client.Object]cache.ByObject{
		&corev1.Secret{}: {
			Namespaces: map[string]cache.Config{options.Namespace: {FieldSelector: named(options.SecretName)}},
			Transform:  withoutData,
		},
		&admissionregistrationv1.MutatingWebhookConfiguration{}:   {Field: named(options.MutatingConfiguration)},
		&admissionregistrationv1.ValidatingWebhookConfiguration{}: {Field: named(options.ValidatingConfiguration)},
	}
	informers, err := cache.New(cfg, cache.Options{Scheme: scheme, ByObject: objects})
	if err != nil {
		return nil, err
	}
	return &objectWatcher{cache: informers, watched: slices.Collect(maps.Keys(objects))}, nil
}

// withoutData keeps the keys of the Secret out of the cache.
func withoutData(object any) (any, error) {
	if secret, ok := object.(*corev1.Secret); ok {
		secret.Data = nil
	}
	return object, nil
}

func (w *objectWatcher) start(ctx context.Context) (<-chan struct{}, error) {
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
	for _, object := range w.watched {
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

func (w *objectWatcher) wait() error { return w.running.Wait() }
