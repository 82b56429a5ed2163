// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
)

// Seal is what a broker is told about the signed sets of its namespace. The zero
// value is for brokers that need no signature.
type Seal struct {
	// Keys are those whose signature counts.
	Keys []ed25519.PublicKey
	// Audience is what sets must be signed for.
	Audience string
	// Lowest is the lowest revision that is taken: that of the namespace's set at
	// admission, 0 where there is none.
	Lowest int64
	// Signature is the signature file of the profiles at admission; nil where the
	// broker would not take them.
	Signature []byte
}

// Keys gives the keys that sets are signed with.
type Keys interface {
	Ring(ctx context.Context) (signing.Ring, error)
}

// seal tells what a broker of a namespace has to trust, given the profiles and the
// signature in its ConfigMap.
func (p *podInjector) seal(ctx context.Context, namespace *corev1.Namespace, profiles, signature []byte) (Seal, error) {
	if p.keys == nil {
		return Seal{}, nil
	}
	ring, err := p.keys.Ring(ctx)
	if err != nil {
		return Seal{}, fmt.Errorf("the pod's broker has to be told which signatures of profiles to trust, and the keys could not be read: %w", err)
	}
	system, err := read[corev1.Namespace](ctx, p.source, client.ObjectKey{Name: contract.SystemNamespace})
	if err == nil && system == nil {
		err = errors.New("it does not exist")
	}
	if err != nil {
		return Seal{}, fmt.Errorf("namespace %q, whose UID tells this cluster's profiles from another's, could not be read: %w", contract.SystemNamespace, err)
	}
	seal := Seal{Keys: []ed25519.PublicKey{ring.Current()}, Audience: signing.Audience(system.UID, namespace)}
	// What a retired key has signed counts for the revision, though the broker would
	// not take it: the set is about to be signed anew.
	if statement, err := (signed.Trust{Keys: ring.Known(), Audience: seal.Audience}).Verify(profiles, signature); err == nil {
		seal.Lowest = statement.Revision
	}
	// A set that is not signed yet, or not by us, is no snapshot: the broker waits for
	// one that is.
	if _, err := (signed.Trust{Keys: seal.Keys, Audience: seal.Audience}).Verify(profiles, signature); err == nil {
		seal.Signature = signature
	}
	return seal, nil
}

// first are the arguments that are the same in all pods.
func (s Seal) first() []string {
	if len(s.Keys) == 0 {
		return nil
	}
	var keys []string
	for _, key := range s.Keys {
		keys = append(keys, signed.FormatKey(key))
	}
	return []string{
		contract.Argument(contract.TrustedKeysFlag, strings.Join(keys, ",")),
		contract.Argument(contract.StateDirFlag, contract.StateDir),
	}
}

// here are the arguments that tell namespaces and moments apart.
func (s Seal) here() []string {
	if s.Audience == "" {
		return nil
	}
	arguments := []string{contract.Argument(contract.ProfilesAudienceFlag, s.Audience)}
	if s.Lowest > 0 {
		arguments = append(arguments, contract.Argument(contract.LowestRevisionFlag, strconv.FormatInt(s.Lowest, 10)))
	}
	return arguments
}

// snapshot is what of the profiles at admission a pod would carry, nil for nothing.
func (s Seal) snapshot(profiles []byte) []byte {
	if len(s.Keys) > 0 && s.Signature == nil {
		return nil
	}
	return profiles
}
