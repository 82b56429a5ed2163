// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// NewInformer returns an informer for the manager's cache. It never holds all pods of a cluster
// in memory before they are stripped, not even at its start. From Kubernetes 1.34 on the API
// server streams them; an older API server returns a list in parts, and of each part only the
// fields that StripPod keeps are stored.
func NewInformer(from cache.ListerWatcher, object runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	if _, pods := object.(*corev1.Pod); pods {
		from = inParts(cache.ToListerWatcherWithContext(from))
	}
	return cache.NewSharedIndexInformer(from, object, resync, indexers)
}

// inParts lists pods in parts, each of which it strips. Informers ask for the version "0", which
// is any version in the API server's memory. The API server ignores the limit for it.
func inParts(from cache.ListerWatcherWithContext) *cache.ListWatch {
	return &cache.ListWatch{
		WatchFuncWithContext: from.WatchWithContext,
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if options.ResourceVersion == "0" {
				options.ResourceVersion = ""
			}
			list, err := from.ListWithContext(ctx, options)
			if err != nil {
				return nil, err
			}
			pods, ok := list.(*corev1.PodList)
			if !ok {
				return list, nil
			}
			for i := range pods.Items {
				pods.Items[i] = *strip(&pods.Items[i])
			}
			return pods, nil
		},
	}
}
