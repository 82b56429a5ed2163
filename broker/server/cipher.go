// SPDX-License-Identifier: Apache-2.0

package server

import (
	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
)

// encryptData serves EncryptData for every generation; it names the algorithm.
func (s *Server) encryptData(c *call, name string, source keySource, nonce, plaintext, aad []byte) (sealed engine.Sealed, algorithm string, err error) {
	defer source.forget()
	if err := checkSize(c.op, "plaintext", len(plaintext), flow.MaxInputSize); err != nil {
		return engine.Sealed{}, "", err
	}
	if err := checkCipherMetadata(c.op, "encryptMetadata", nonce, aad, nil); err != nil {
		return engine.Sealed{}, "", err
	}
	policy, key, err := s.cipher(c, name, source)
	if err != nil {
		return engine.Sealed{}, "", err
	}
	if sealed, err = engine.Encrypt(policy, key, nonce, plaintext, aad); err != nil {
		return engine.Sealed{}, "", s.engineError(c, name, err)
	}
	return sealed, policy.Algorithm(), nil
}

// decryptData serves DecryptData for every generation.
func (s *Server) decryptData(c *call, name string, source keySource, sealed engine.Sealed, aad []byte) (plaintext []byte, err error) {
	defer source.forget()
	if err := checkSize(c.op, "ciphertext", len(sealed.Ciphertext), flow.MaxInputSize); err != nil {
		return nil, err
	}
	if err := checkCipherMetadata(c.op, "decryptMetadata", sealed.Nonce, aad, sealed.Tag); err != nil {
		return nil, err
	}
	policy, key, err := s.cipher(c, name, source)
	if err != nil {
		return nil, err
	}
	if plaintext, err = engine.Decrypt(policy, key, sealed, aad); err != nil {
		return nil, s.engineError(c, name, err)
	}
	return plaintext, nil
}

func checkCipherMetadata(op engine.Operation, field string, nonce, aad, tag []byte) error {
	if err := checkPartSize(op, field, ".nonce", len(nonce), maxNonceSize); err != nil {
		return err
	}
	if err := checkPartSize(op, field, ".aad", len(aad), maxAADSize); err != nil {
		return err
	}
	return checkPartSize(op, field, ".tag", len(tag), maxTagSize)
}

// cipher finds the policy and the key of a request.
func (s *Server) cipher(c *call, name string, source keySource) (*profile.CipherPolicy, engine.Cipher, error) {
	if err := source.check(c.op, maxAESKeySize); err != nil {
		return nil, nil, err
	}
	p, err := s.profile(c, name)
	if err != nil {
		return nil, nil, err
	}
	policy := p.Cipher()
	if policy == nil {
		return nil, nil, refused(codes.FailedPrecondition, c.op, name, "the profile does not offer this operation")
	}
	if source.byID {
		key, err := s.key(c, name, policy.Keys(), source)
		if err != nil {
			return nil, nil, err
		}
		if key.Cipher() == nil {
			return nil, nil, refused(codes.InvalidArgument, c.op, name, "%s.keyId names a key pair, expected an AES key", source.field)
		}
		return policy, key.Cipher(), nil
	}
	if err := source.allowRaw(c.op, name, policy.Keys()); err != nil {
		return nil, nil, err
	}
	cipher, err := engine.NewAESGCM(source.raw)
	if err != nil {
		return nil, nil, refused(codes.InvalidArgument, c.op, name, "%s.rawKey %v", source.field, err)
	}
	return policy, cipher, nil
}
