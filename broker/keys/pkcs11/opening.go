// SPDX-License-Identifier: Apache-2.0

//go:build pkcs11

package pkcs11

import (
	"context"
	"crypto"
	"crypto/ecdh"
	"fmt"

	"github.com/miekg/pkcs11"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// decrypter implements keys.RemoteDecrypter.
type decrypter struct{ key }

// oaep are the parameters of RSA-OAEP by its hash. Some tokens, such as SoftHSM, have SHA-1 only.
var oaep = map[crypto.Hash]struct{ digest, mask uint }{
	crypto.SHA1: {pkcs11.CKM_SHA_1, pkcs11.CKG_MGF1_SHA1}, crypto.SHA256: hashes[crypto.SHA256], crypto.SHA384: hashes[crypto.SHA384], crypto.SHA512: hashes[crypto.SHA512],
}

// DecryptOAEP implements keys.RemoteDecrypter.
func (d *decrypter) DecryptOAEP(ctx context.Context, hash crypto.Hash, ciphertext []byte) ([]byte, error) {
	parameters, known := oaep[hash]
	if !known {
		return nil, fmt.Errorf("%w: PKCS #11 has no RSA-OAEP with %s here", keys.ErrUnusable, hash)
	}
	return do(ctx, d.provider, func(s *session) ([]byte, error) {
		return with(s, d.name, func(object pkcs11.ObjectHandle) ([]byte, error) {
			mechanism := pkcs11.NewMechanism(pkcs11.CKM_RSA_PKCS_OAEP, pkcs11.NewOAEPParams(parameters.digest, parameters.mask, pkcs11.CKZ_DATA_SPECIFIED, nil))
			if err := s.module.DecryptInit(s.handle, []*pkcs11.Mechanism{mechanism}, object); err != nil {
				return nil, err
			}
			plaintext, err := s.module.Decrypt(s.handle, ciphertext)
			return plaintext, s.unprotected(err)
		})
	})
}

// exchanger implements keys.RemoteExchanger.
type exchanger struct{ key }

// ECDH implements keys.RemoteExchanger.
func (e *exchanger) ECDH(ctx context.Context, other *ecdh.PublicKey) ([]byte, error) {
	point := other.Bytes()
	size := (len(point) - 1) / 2 // an uncompressed point has two coordinates
	return do(ctx, e.provider, func(s *session) ([]byte, error) {
		return with(s, e.name, func(object pkcs11.ObjectHandle) ([]byte, error) {
			mechanism := pkcs11.NewMechanism(pkcs11.CKM_ECDH1_DERIVE, pkcs11.NewECDH1DeriveParams(pkcs11.CKD_NULL, nil, point))
			derived, err := s.module.DeriveKey(s.handle, []*pkcs11.Mechanism{mechanism}, object, append(dataKey(), pkcs11.NewAttribute(pkcs11.CKA_VALUE_LEN, size)))
			if err != nil {
				return nil, err
			}
			return s.take(derived)
		})
	})
}

// take reads the bytes of an object of the session, and destroys the object.
func (s *session) take(object pkcs11.ObjectHandle) ([]byte, error) {
	values, err := s.attributes(object, pkcs11.CKA_VALUE)
	ended := s.module.DestroyObject(s.handle, object)
	if err != nil {
		return nil, err
	}
	if ended != nil {
		clear(values[0])
		return nil, ended
	}
	return values[0], nil
}
