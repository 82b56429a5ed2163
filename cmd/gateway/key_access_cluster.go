// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/accesssource"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
)

// keyAccessCluster is the part of the configuration about resources of Kubernetes.
type keyAccessCluster struct {
	// Namespace has the policies and peers. If it is empty, it is the namespace of the pod.
	Namespace string `json:"namespace"`
}

// complete fills in the namespace and checks it.
func (c *keyAccessCluster) complete() error {
	if c.Namespace == "" {
		c.Namespace = os.Getenv("POD_NAMESPACE")
	}
	if len(validation.IsDNS1123Label(c.Namespace)) > 0 {
		return fmt.Errorf("cluster.namespace: found %.80q, expected the name of the namespace with the policies and peers (or set POD_NAMESPACE)", c.Namespace)
	}
	return nil
}

// clusterObjects are the policies and peers that resources describe.
type clusterObjects struct {
	objects cache.Cache
	*accesssource.Source
}

// newClusterObjects returns the objects of the cluster that the environment names.
func (k *keyAccess) newClusterObjects(issuers []caller.Issuer) (*clusterObjects, error) {
	access, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("cluster: no access to a cluster: %w", err)
	}
	access.UserAgent = "crypto-broker-key-access/" + program.Version(version)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	objects, err := cache.New(access, cache.Options{
		Scheme: scheme, DefaultTransform: cache.TransformStripManagedFields(),
		DefaultNamespaces: map[string]cache.Config{k.config.Cluster.Namespace: {}},
	})
	if err != nil {
		return nil, fmt.Errorf("cluster: preparing to reach it at %s: %w", access.Host, err)
	}
	return &clusterObjects{objects, accesssource.New(accesssource.Options{
		Objects: objects, Modules: k.config.modules, Issuers: issuers, PoliciesChanged: k.policiesChanged, Peers: k.peers, Logger: k.logger,
	})}, nil
}

// follow follows the resources until ctx ends.
func (c *clusterObjects) follow(ctx context.Context, group *errgroup.Group) {
	group.Go(func() error { return c.objects.Start(ctx) })
	group.Go(func() error { return c.Run(ctx) })
}

// await waits until there are policies, and reports whether there are.
func (c *clusterObjects) await(ctx context.Context) bool {
	if c == nil {
		return true
	}
	select {
	case <-c.Ready():
		return true
	case <-ctx.Done():
		return false
	}
}

// statusPaths returns the paths of the status port that only this program has.
func (k *keyAccess) statusPaths() *http.ServeMux {
	paths := http.NewServeMux()
	if k.cluster != nil {
		always := func() string { return "" } // the report shows problems even before the service is ready
		paths.Handle("GET "+contract.KeyProvidersPath, &reports{ready: always, report: k.cluster.Report})
	}
	return paths
}
