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

// restoration notices that the cluster's past came back: an object of the API has
// an older version than it had, which happens only where etcd was restored from a
// backup. What a leader remembers is of no use then. Generations are given a second
// time, to other specs; its own writes are gone; and the guard would compare with
// profiles of which the cluster knows nothing, as long as this process runs and no
// longer. So the operator ends, and the next leader begins with what there is: the
// same as after an outage of the API server that outlasts the leader's lease, which
// is what most restorations are.
type restoration struct {
	once sync.Once
	// noticed is closed once something came back, which is told in what.
	noticed chan struct{}
	what    string
}

func newRestoration() *restoration { return &restoration{noticed: make(chan struct{})} }

// watch returns an error once something came back, nil when ctx ends before.
func (r *restoration) watch(ctx context.Context, informers cache.Informers) error {
	if err := r.follow(ctx, informers); err != nil {
		return fmt.Errorf("watching whether the cluster's past comes back: %w", err)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-r.noticed:
		return r.err()
	}
}

// follow begins to look at what decides about sets.
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

// err says what came back, nil while nothing did.
func (r *restoration) err() error {
	select {
	case <-r.noticed:
		return fmt.Errorf("etcd was restored from a backup: %s. The operator ends, to begin anew with what the cluster has now", r.what)
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
	// Versions that can't be compared, which no API server should give, prove nothing.
	if order, err := resourceversion.CompareResourceVersion(now.GetResourceVersion(), old.GetResourceVersion()); err != nil || order >= 0 {
		return
	}
	r.once.Do(func() {
		r.what = fmt.Sprintf("%T %s has the version %s, and had %s before", now, client.ObjectKeyFromObject(now), now.GetResourceVersion(), old.GetResourceVersion())
		close(r.noticed)
	})
}
