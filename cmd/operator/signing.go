// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
)

// signingConfig has the settings of the keys that sign sets of profiles.
type signingConfig struct {
	secret   string
	lifetime time.Duration
}

func (c *signingConfig) flags(f *pflag.FlagSet) {
	f.StringVar(&c.secret, "signing-secret-name", "crypto-broker-operator-signing", "`name` of the Secret with the keys that sign profiles; the operator creates it")
	f.DurationVar(&c.lifetime, "signing-key-lifetime", signing.DefaultLifetime, "how long the operator uses a signing key before it makes the next one, at least 1h; running brokers are not affected")
}

func (c *signingConfig) check(problem func(flag, found, expected string)) {
	if len(validation.IsDNS1123Subdomain(c.secret)) > 0 {
		problem("signing-secret-name", c.secret, "the name of an object")
	}
	if c.lifetime < signing.LeastLifetime {
		problem("signing-key-lifetime", c.lifetime.String(), fmt.Sprintf("at least %s", signing.LeastLifetime))
	}
}

// addKeys adds the keys to the manager: every replica reads them, and the leader rotates
// them.
func addKeys(mgr manager.Manager, c *config, records *audit.Log) (*signing.Keys, error) {
	keys, err := signing.New(mgr.GetConfig(), signing.Options{
		Namespace:  c.namespace,
		SecretName: c.signing.secret,
		Lifetime:   c.signing.lifetime,
		Pods:       mgr.GetClient(),
		Elected:    mgr.Elected(),
		Events:     mgr.GetEventRecorder(v1alpha1.FieldManager),
		Audit:      records,
	})
	if err != nil {
		return nil, err
	}
	return keys, mgr.Add(keys)
}
