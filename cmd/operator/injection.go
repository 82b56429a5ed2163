// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ed25519"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers/injectiontemplate"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
)

// addTemplate adds the reconciler that writes the InjectionTemplate. The template is needed even
// if the webhook injects, because policies compare final pods with it. keys sign sets of
// profiles; the template makes brokers trust the current one.
func addTemplate(mgr manager.Manager, c *config, keys *signing.Keys) error {
	render := func(ctx context.Context) (v1alpha1.InjectionTemplateSpec, error) {
		ring, err := keys.Ring(ctx)
		if err != nil {
			return v1alpha1.InjectionTemplateSpec{}, fmt.Errorf("find the signing key that brokers trust: %w", err)
		}
		var system corev1.Namespace
		if err := mgr.GetClient().Get(ctx, client.ObjectKey{Name: contract.SystemNamespace}, &system); err != nil {
			return v1alpha1.InjectionTemplateSpec{}, fmt.Errorf("the namespace %s, whose UID tells this cluster from others: %w", contract.SystemNamespace, err)
		}
		common := c.template()
		common.Seal.Keys = []ed25519.PublicKey{ring.Current()}
		return injection.Parameters(common, string(system.UID))
	}
	watching, err := client.NewWithWatch(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return err
	}
	reconciler := injectiontemplate.New(watching, c.injectionTemplate, render)
	keys.OnChange(func(context.Context) { reconciler.Changed() })
	return mgr.Add(reconciler)
}
