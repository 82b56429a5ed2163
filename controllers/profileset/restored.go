// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// restoration detects that etcd was restored from a backup. Only then does an object have an
// older version than before. Afterwards the memory of the leader is wrong: generations are used
// again for other specs, its writes are gone, and the guard would compare with profiles that the
// cluster does not have. So the operator ends, and the next leader starts from the state of the
// cluster. In most restorations this happens anyway, because the API server is down for longer
// than the leader's lease.
type restoration struct {
	once sync.Once
	// detected is closed once an older object was seen. what is the name of that object.
	detected chan struct{}
	what     string
}

func newRestoration() *restoration { return &restoration{detected: make(chan struct{})} }

// watch returns an error once a restoration is detected, and nil when ctx ends before.
func (r *restoration) watch(ctx context.Context, informers cache.Informers) error {
	if err := r.follow(ctx, informers); err != nil {
		return fmt.Errorf("watch for an etcd that was restored from a backup: %w", err)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-r.detected:
		return r.err()
	}
}

// follow subscribes to the objects that decide about sets.
func (r *restoration) follow(ctx context.Context, informers cache.Informers) error {
	handler := toolscache.ResourceEventHandlerFuncs{UpdateFunc: r.updated}
	for _, object := range []client.Object{&corev1.ConfigMap{}, &v1alpha1.CryptoProfile{}, &v1alpha1.ClusterCryptoProfile{}} {
		informer, err := informers.GetInformer(ctx, object)
		if err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	return nil
}

// err returns an error after a restoration was detected, and nil before.
func (r *restoration) err() error {
	select {
	case <-r.detected:
		return fmt.Errorf("etcd was restored from a backup: %s. The operator ends, and starts again with what the cluster has now", r.what)
	default:
		return nil
	}
}

func (r *restoration) updated(before, after any) {
	old, isObject := before.(client.Object)
	now, isObjectNow := after.(client.Object)
	if !isObject || !isObjectNow {
		return
	}
	// Versions that cannot be compared, which no API server should return, prove nothing.
	if order, err := resourceversion.CompareResourceVersion(now.GetResourceVersion(), old.GetResourceVersion()); err != nil || order >= 0 {
		return
	}
	r.once.Do(func() {
		r.what = fmt.Sprintf("%T %s has the version %s, and had %s before", now, client.ObjectKeyFromObject(now), now.GetResourceVersion(), old.GetResourceVersion())
		close(r.detected)
	})
}
