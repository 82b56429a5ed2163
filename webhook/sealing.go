// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
)

// Keys returns the keys that sets are signed with.
type Keys interface {
	Ring(ctx context.Context) (signing.Ring, error)
}

// seal returns the Seal of a broker in a namespace. profiles and signature are the files in the
// namespace's ConfigMap.
func (p *podInjector) seal(ctx context.Context, namespace *corev1.Namespace, profiles, signature []byte) (template.Seal, error) {
	if p.keys == nil {
		return template.Seal{}, nil
	}
	ring, err := p.keys.Ring(ctx)
	if err != nil {
		return template.Seal{}, fmt.Errorf("the signing keys that the pod's broker has to trust could not be read: %w", err)
	}
	system, err := read[corev1.Namespace](ctx, p.source, client.ObjectKey{Name: contract.SystemNamespace})
	if err == nil && system == nil {
		err = errors.New("it does not exist")
	}
	if err != nil {
		return template.Seal{}, fmt.Errorf("namespace %q, whose UID is part of what profiles of this cluster are signed for, could not be read: %w", contract.SystemNamespace, err)
	}
	seal := template.Seal{Keys: []ed25519.PublicKey{ring.Current()}, Audience: signing.Audience(system.UID, namespace)}
	// A signature of a retired key counts for the revision although the broker refuses it,
	// because the operator signs the same set again with the same revision.
	if statement, err := (signed.Trust{Keys: ring.Known(), Audience: seal.Audience}).Verify(profiles, signature); err == nil {
		seal.Lowest = statement.Revision
	}
	// A set without a signature of the current key does not become a snapshot. The broker waits
	// for the signed set.
	if _, err := (signed.Trust{Keys: seal.Keys, Audience: seal.Audience}).Verify(profiles, signature); err == nil {
		seal.Signature = signature
	}
	return seal, nil
}
