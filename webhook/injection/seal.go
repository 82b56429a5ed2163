// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"crypto/ed25519"
	"strconv"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
)

// Seal is what the arguments of a broker say about the signed sets of its namespace. The zero
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
