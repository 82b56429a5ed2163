// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/limits"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
)

// Encrypt serves EncryptData for every generation. It returns the name of the algorithm as
// well.
func (h *Handlers) Encrypt(c *Call, name string, source KeySource, nonce, plaintext, aad []byte) (sealed engine.Sealed, algorithm string, err error) {
	defer source.Forget()
	if err := requests.CheckSize(c.Operation, "plaintext", len(plaintext), limits.MaxInputSize); err != nil {
		return engine.Sealed{}, "", err
	}
	if err := checkCipherMetadata(c.Operation, "encryptMetadata", nonce, aad, nil); err != nil {
		return engine.Sealed{}, "", err
	}
	policy, key, err := h.cipher(c, name, source)
	if err != nil {
		return engine.Sealed{}, "", err
	}
	c.use.GivenNonce = !policy.RandomNonce()
	if sealed, err = engine.Encrypt(policy, key, nonce, plaintext, aad); err != nil {
		return engine.Sealed{}, "", h.engineError(c, name, err)
	}
	return sealed, policy.Algorithm(), nil
}

// Decrypt serves DecryptData for every generation.
func (h *Handlers) Decrypt(c *Call, name string, source KeySource, sealed engine.Sealed, aad []byte) (plaintext []byte, err error) {
	defer source.Forget()
	if err := requests.CheckSize(c.Operation, "ciphertext", len(sealed.Ciphertext), limits.MaxInputSize); err != nil {
		return nil, err
	}
	if err := checkCipherMetadata(c.Operation, "decryptMetadata", sealed.Nonce, aad, sealed.Tag); err != nil {
		return nil, err
	}
	policy, key, err := h.cipher(c, name, source)
	if err != nil {
		return nil, err
	}
	if plaintext, err = engine.Decrypt(policy, key, sealed, aad); err != nil {
		return nil, h.engineError(c, name, err)
	}
	h.Metrics.ReadWith(source.name().ID, c.keyVersion)
	return plaintext, nil
}

func checkCipherMetadata(op profile.Operation, field string, nonce, aad, tag []byte) error {
	if err := requests.CheckPartSize(op, field, ".nonce", len(nonce), requests.MaxNonceSize); err != nil {
		return err
	}
	if err := requests.CheckPartSize(op, field, ".aad", len(aad), requests.MaxAADSize); err != nil {
		return err
	}
	return requests.CheckPartSize(op, field, ".tag", len(tag), requests.MaxTagSize)
}

// cipher returns the policy and the key of a request.
func (h *Handlers) cipher(c *Call, name string, source KeySource) (*profile.CipherPolicy, engine.Cipher, error) {
	if err := source.check(c.Operation, requests.MaxAESKeySize); err != nil {
		return nil, nil, err
	}
	policy, err := offered(h, c, name, (*profile.Compiled).Cipher)
	if err != nil {
		return nil, nil, err
	}
	c.use.Algorithm, c.use.TagSize = policy.Algorithm(), uint8(policy.TagSize())
	c.use.Keys[0] = profile.UsedKey{Algorithm: profile.AESKey, Bits: 8 * policy.KeySize(), ID: source.name().ID}
	if source.ByID {
		key, err := h.key(c, name, policy.Keys(), source)
		if err != nil {
			return nil, nil, err
		}
		cipher := key.Cipher(c.contextOf(key))
		if cipher == nil {
			return nil, nil, requests.Refused(codes.InvalidArgument, c.Operation, name, "%s.keyId names a key pair, expected an AES key", source.Field)
		}
		// Data that is encrypted with this short tag could never be decrypted.
		if key.Remote() && policy.TagSize() != engine.FullTagSize {
			return nil, nil, requests.Refused(codes.FailedPrecondition, c.Operation, name, "the key %q stays in its key manager, which makes and checks tags of %d bits, and the profile has a ShortTagLength of %d bits", source.ID, 8*engine.FullTagSize, 8*policy.TagSize())
		}
		if c.KeyID, c.keyVersion = source.ID, key.Version(); c.keyVersion != "" {
			c.KeyID = source.name().ID + "#" + c.keyVersion
		}
		return policy, cipher, nil
	}
	if err := source.allowRaw(c.Operation, name, policy.Keys()); err != nil {
		return nil, nil, err
	}
	cipher, err := engine.NewAESGCM(source.Raw)
	if err != nil {
		return nil, nil, requests.Refused(codes.InvalidArgument, c.Operation, name, "%s.rawKey %v", source.Field, err)
	}
	return policy, cipher, nil
}
