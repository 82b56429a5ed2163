// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// NewStreamKey makes and wraps the data key of EncryptStream. It has the size of the keys of
// streams, whatever KeySize of the profile is. The caller overwrites the data key.
func (h *Handlers) NewStreamKey(c *Call, name, id string, context []byte) (dataKey, wrapped []byte, err error) {
	policy, err := h.dataKeys(c, name, context)
	if err != nil {
		return nil, nil, err
	}
	dataKey, wrapped, _, err = h.newDataKey(c, name, policy, id, context, algorithm.AES256GCMHKDF64KB.KeySize()/8)
	return dataKey, wrapped, err
}

// StreamPolicy returns the policy of a call of DecryptStream.
func (h *Handlers) StreamPolicy(c *Call, name string, context []byte) (*profile.DataKeyPolicy, error) {
	return h.dataKeys(c, name, context)
}

// StreamKey returns the data key of a stream. The caller overwrites it.
func (h *Handlers) StreamKey(c *Call, name string, policy *profile.DataKeyPolicy, given WrappedKey) ([]byte, error) {
	dataKey, w, err := h.unwrap(c, name, policy, given)
	if err != nil {
		return nil, err
	}
	w.noteUse(0)
	w.noteRead()
	return dataKey, nil
}
