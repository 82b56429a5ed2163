// SPDX-License-Identifier: Apache-2.0

//go:build pkcs11

package pkcs11

import (
	"context"
	"fmt"

	"github.com/miekg/pkcs11"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine/wrap"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// semiblock is what AES key wrap works on, in bytes (RFC 3394).
const semiblock = 8

// dataKey are the attributes of a data key while a session wraps or unwraps it: an object of the
// session, which the library may read.
func dataKey() []*pkcs11.Attribute {
	return []*pkcs11.Attribute{
		pkcs11.NewAttribute(pkcs11.CKA_CLASS, pkcs11.CKO_SECRET_KEY), pkcs11.NewAttribute(pkcs11.CKA_KEY_TYPE, pkcs11.CKK_GENERIC_SECRET),
		pkcs11.NewAttribute(pkcs11.CKA_TOKEN, false), pkcs11.NewAttribute(pkcs11.CKA_SENSITIVE, false), pkcs11.NewAttribute(pkcs11.CKA_EXTRACTABLE, true),
	}
}

func aesKW() []*pkcs11.Mechanism {
	return []*pkcs11.Mechanism{pkcs11.NewMechanism(pkcs11.CKM_AES_KEY_WRAP, nil)}
}

// wrapKW wraps with AES key wrap, for which libraries want the data key as an object.
func (w *aesWrapper) wrapKW(ctx context.Context, material, additional []byte) ([]byte, error) {
	switch {
	case len(additional) > 0:
		return nil, &wrap.InputError{Problem: fmt.Sprintf("%s cannot bind a key to a context, found %d bytes of additional data, expected none", algorithm.WrapAESKW, len(additional))}
	case len(material) < wrap.MinSize || len(material) > wrap.MaxSize || len(material)%semiblock != 0:
		return nil, &wrap.InputError{Problem: fmt.Sprintf("found a key of %d bytes, expected %d to %d, and a multiple of %d for %s", len(material), wrap.MinSize, wrap.MaxSize, semiblock, algorithm.WrapAESKW)}
	}
	return do(ctx, w.provider, func(s *session) ([]byte, error) {
		return with(s, w.name, func(kek pkcs11.ObjectHandle) ([]byte, error) {
			object, err := s.module.CreateObject(s.handle, append(dataKey(), pkcs11.NewAttribute(pkcs11.CKA_VALUE, material)))
			if err != nil {
				return nil, err
			}
			wrapped, err := s.module.WrapKey(s.handle, aesKW(), kek, object)
			if ended := s.module.DestroyObject(s.handle, object); err == nil {
				err = ended
			}
			return wrapped, err
		})
	})
}

// unwrapKW is the reverse of wrapKW.
func (w *aesWrapper) unwrapKW(ctx context.Context, wrapped, additional []byte) ([]byte, error) {
	if len(additional) > 0 || len(wrapped) < wrap.MinSize+semiblock || len(wrapped) > wrap.MaxSize+semiblock || len(wrapped)%semiblock != 0 {
		return nil, keys.ErrInvalidCiphertext
	}
	return do(ctx, w.provider, func(s *session) ([]byte, error) {
		return with(s, w.name, func(kek pkcs11.ObjectHandle) ([]byte, error) {
			object, err := s.module.UnwrapKey(s.handle, aesKW(), kek, wrapped, dataKey())
			if err != nil {
				return nil, s.unprotected(err)
			}
			values, err := s.attributes(object, pkcs11.CKA_VALUE)
			if ended := s.module.DestroyObject(s.handle, object); err == nil {
				err = ended
			}
			if err != nil {
				return nil, err
			}
			return values[0], nil
		})
	})
}
