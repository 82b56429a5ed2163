// SPDX-License-Identifier: Apache-2.0

package certificates

import "time"

// purpose has the settings of certificates for one use.
type purpose struct {
	// name is the common name of serving certificates.
	name string

	// leafLifetime is how long a serving certificate is valid. It is renewed after two
	// thirds of that.
	leafLifetime time.Duration
}

var (
	// webhookServing is for the webhooks, whose replicas make their certificates themselves.
	webhookServing = purpose{"crypto-broker-operator webhook", 24 * time.Hour}

	// gatewayServing is for key gateways. They continue to serve for ten days without an operator
	// that renews their certificate.
	gatewayServing = purpose{"crypto-broker key gateway", 30 * 24 * time.Hour}
)

// authorityName is the common name of every authority for the purpose. The name identifies an
// authority in a bundle after the Secret is lost.
func (p purpose) authorityName() string { return p.name + " authority" }

// retireAfter is how long an authority that no longer signs stays in the bundles: until the
// last certificate it can have signed has expired.
func (p purpose) retireAfter() time.Duration { return p.leafLifetime + skew }
