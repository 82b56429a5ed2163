// SPDX-License-Identifier: Apache-2.0

package signing

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

// watcher reports changes of the Secret. Its cache holds only the metadata.
type watcher struct {
	cache   cache.Cache
	running errgroup.Group
}

// newWatcher selects the Secret by name in the list and watch requests themselves,
// so that rights limited by resourceNames suffice.
func newWatcher(cfg *rest.Config, scheme *runtime.Scheme, options Options) (*watcher, error) {
	informers, err := cache.New(cfg, cache.Options{
		Scheme: scheme,
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {
			Namespaces: map[string]cache.Config{options.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", options.SecretName)}},
			Transform: func(object any) (any, error) {
				if secret, ok := object.(*corev1.Secret); ok {
					secret.Data = nil
				}
				return object, nil
			},
		}},
	})
	if err != nil {
		return nil, err
	}
	return &watcher{cache: informers}, nil
}

// start watches until ctx ends. The channel gets a value after changes;
// several may become one.
func (w *watcher) start(ctx context.Context) (<-chan struct{}, error) {
	changes := make(chan struct{}, 1)
	changed := func() {
		select {
		case changes <- struct{}{}:
		default:
		}
	}
	informer, err := w.cache.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		UpdateFunc: func(any, any) { changed() },
		DeleteFunc: func(any) { changed() },
	})
	if err != nil {
		return nil, err
	}
	w.running.Go(func() error { return w.cache.Start(ctx) })
	return changes, nil
}

// wait returns after everything that start began has ended.
func (w *watcher) wait() error { return w.running.Wait() }
