// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/controllers/brokercertificates"
	"github.com/crypto-broker/crypto-broker-operator/controllers/keygateway"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
)

// addKeyGateway adds the leader's tasks for key gateways and for the certificates of brokers to
// the manager. It returns nil if there is no key gateway.
func addKeyGateway(mgr manager.Manager, c *config, keys *signing.Keys, records *audit.Log) (*keygateway.Gateway, error) {
	if c.keyGatewayService == "" {
		return nil, nil
	}
	gateway, err := keygateway.New(mgr.GetConfig(), keygateway.Options{Namespace: c.namespace, Service: c.keyGatewayService, Keys: keys, Audit: records})
	if err != nil {
		return nil, err
	}
	keys.OnChange(func(context.Context) { gateway.KeysChanged() })
	if c.brokerCertificates {
		if err := brokercertificates.Setup(mgr, brokercertificates.Options{Signer: gateway, Audit: records}); err != nil {
			return nil, err
		}
	}
	return gateway, mgr.Add(gateway)
}
