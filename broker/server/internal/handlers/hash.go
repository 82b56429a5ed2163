// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"encoding/hex"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/limits"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
)

// Hash serves HashData for every generation. It appends the digest of the input to dst, and
// returns the name of the algorithm as well.
func (h *Handlers) Hash(c *Call, dst []byte, name string, input []byte) (digest []byte, algorithm string, err error) {
	if err := requests.CheckSize(c.Operation, "input", len(input), limits.MaxInputSize); err != nil {
		return nil, "", err
	}
	policy, err := h.HashPolicy(c, name)
	if err != nil {
		return nil, "", err
	}
	return engine.AppendDigest(dst, policy, input), policy.Algorithm().String(), nil
}

// HashPolicy returns the policy of HashData in the profile of a call.
func (h *Handlers) HashPolicy(c *Call, name string) (*profile.HashPolicy, error) {
	policy, err := offered(h, c, name, (*profile.Compiled).Hash)
	if err != nil {
		return nil, err
	}
	c.use.Algorithm = policy.Algorithm().String()
	return policy, nil
}

// Hexadecimal returns a digest in lower-case hexadecimal digits.
func Hexadecimal(digest []byte) string {
	var buffer [2 * engine.MaxDigestSize]byte
	return string(hex.AppendEncode(buffer[:0], digest))
}
