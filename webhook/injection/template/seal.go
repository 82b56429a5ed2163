// SPDX-License-Identifier: Apache-2.0

package template

import (
	"crypto/ed25519"
	"strconv"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
)

// Seal has the arguments of a broker about the signed sets of its namespace. The zero value is
// for brokers that need no signature.
type Seal struct {
	// Keys are the public keys whose signatures the broker accepts.
	Keys []ed25519.PublicKey
	// Audience is the audience that sets must be signed for.
	Audience string
	// Lowest is the lowest revision that the broker accepts: the revision of the namespace's set
	// at admission, or 0.
	Lowest int64
	// Signature is the signature file of the profiles at admission. It is nil if the broker would
	// refuse them.
	Signature []byte
}

// CommonArguments are the arguments that are the same in all pods.
func (s Seal) CommonArguments() []string {
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

// PodArguments are the arguments that depend on the namespace of a pod and on the set
// at its admission.
func (s Seal) PodArguments() []string {
	if s.Audience == "" {
		return nil
	}
	arguments := []string{contract.Argument(contract.ProfilesAudienceFlag, s.Audience)}
	if s.Lowest > 0 {
		arguments = append(arguments, contract.Argument(contract.LowestRevisionFlag, strconv.FormatInt(s.Lowest, 10)))
	}
	return arguments
}

// Snapshot returns the profiles for the snapshot of a pod. It returns nil if the broker would
// refuse them.
func (s Seal) Snapshot(profiles []byte) []byte {
	if len(s.Keys) > 0 && s.Signature == nil {
		return nil
	}
	return profiles
}
