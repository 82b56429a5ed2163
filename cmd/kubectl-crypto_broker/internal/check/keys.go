// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
)

// overdue is how long after the end of its lifetime a key should have been replaced.
const overdue = 24 * time.Hour

// signingKey checks that the operator has a key to sign sets with. It reads only the metadata of
// the Secret. Without the right to do that, it uses the key that a new broker trusts.
func (c *Checker) signingKey(ctx context.Context) (State, string) {
	const what = "whether the operator has a signing key"
	secret := c.operator.SigningSecret()
	metadata, err := installation.SecretMetadata(ctx, c.Client, c.operator.Namespace, secret)
	switch {
	case apierror.LacksRight(err) && c.made != nil:
		if keys, _ := contract.ArgumentOf(injected.Broker(c.made).Args, contract.TrustedKeysFlag); keys == "" {
			return Warning, fmt.Sprintf("a new broker trusts no signing key, so that it accepts any set of profiles: see whether the Secret %s in namespace %s is damaged; %s", secret, c.operator.Namespace, apierror.Plain(err))
		}
		return OK, fmt.Sprintf("a new broker trusts a signing key of the operator; its age is not known: %s", apierror.OneLine(apierror.Plain(err)))
	case apierrors.IsNotFound(err):
		return Failed, fmt.Sprintf("there is no Secret %s in namespace %s: the operator makes one when it runs, and its log says why it does not", secret, c.operator.Namespace)
	case err != nil:
		return cannotTell(what, err)
	}
	age := signing.AgeOf(metadata)
	if age.Since.IsZero() {
		return Warning, fmt.Sprintf("the Secret %s does not say when its key became current: see the operator's log", secret)
	}
	found := fmt.Sprintf("the key has been current since %s, and %d retired keys still sign", age.Since.UTC().Format(time.RFC3339), len(age.Retired))
	lifetime, err := time.ParseDuration(c.operator.Argument("signing-key-lifetime", signing.DefaultLifetime.String()))
	switch {
	case err == nil && time.Since(age.Since) > lifetime+overdue:
		return Warning, fmt.Sprintf("%s; it should have been replaced after %s: kubectl get events -n %s says why it was not", found, lifetime, c.operator.Namespace)
	case age.Asked:
		return Warning, fmt.Sprintf("%s; somebody has asked for another key, and the operator has not made it yet: its log says why, if that lasts", found)
	default:
		return OK, found
	}
}
