// SPDX-License-Identifier: Apache-2.0

//go:build pkcs11

package pkcs11

import (
	"context"
	"crypto/subtle"
	"fmt"
	"slices"

	"github.com/miekg/pkcs11"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine/wrap"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// semiblock is the unit of AES key wrap, in bytes (RFC 3394).
const semiblock = 8

// dataKey are the attributes of a data key while a session wraps or unwraps it: an object of the
// session, which the library may read.
func dataKey() []*pkcs11.Attribute {
	return []*pkcs11.Attribute{
		pkcs11.NewAttribute(pkcs11.CKA_CLASS, pkcs11.CKO_SECRET_KEY), pkcs11.NewAttribute(pkcs11.CKA_KEY_TYPE, pkcs11.CKK_GENERIC_SECRET),
		pkcs11.NewAttribute(pkcs11.CKA_TOKEN, false), pkcs11.NewAttribute(pkcs11.CKA_SENSITIVE, false), pkcs11.NewAttribute(pkcs11.CKA_EXTRACTABLE, true),
	}
}

// keyWrap is AES key wrap, with padding (RFC 5649) or without (RFC 3394).
type keyWrap struct {
	name      algorithm.Wrapping
	pads      bool
	mechanism uint
}

// aesKeyWrapKWP is CKM_AES_KEY_WRAP_KWP of PKCS #11 3.0.
const aesKeyWrapKWP = 0x210b

// kwp returns the mechanism of the token for AES key wrap with padding (RFC 5649), or 0 if there
// is none. CKM_AES_KEY_WRAP_PAD is this algorithm in PKCS #11 2.40, and another one in 3.0. So
// the session tries it with the key: the result of the other algorithm is one block longer.
func (s *session) kwp(kek pkcs11.ObjectHandle) (mechanism uint, err error) {
	info, err := s.module.GetSessionInfo(s.handle)
	if err != nil {
		return 0, err
	}
	mechanisms, err := s.module.GetMechanismList(info.SlotID)
	if err != nil {
		return 0, err
	}
	has := func(wanted uint) bool {
		return slices.ContainsFunc(mechanisms, func(m *pkcs11.Mechanism) bool { return m.Mechanism == wanted })
	}
	switch {
	case has(aesKeyWrapKWP):
		return aesKeyWrapKWP, nil
	case !has(pkcs11.CKM_AES_KEY_WRAP_PAD):
		return 0, nil
	}
	sample := make([]byte, 2*semiblock)
	wrapped, err := s.wrapWith(pkcs11.CKM_AES_KEY_WRAP_PAD, kek, sample)
	switch err = typed(s.unprotected(err)); {
	case err != nil && keys.Transient(err):
		return 0, err
	case err != nil, len(wrapped) != len(sample)+semiblock:
		return 0, nil //nolint:nilerr // the key, or the token, does not wrap in this way
	}
	return pkcs11.CKM_AES_KEY_WRAP_PAD, nil
}

// wrapWith wraps a data key. It makes an object of the data key, because libraries wrap only
// objects.
func (s *session) wrapWith(mechanism uint, kek pkcs11.ObjectHandle, material []byte) ([]byte, error) {
	object, err := s.module.CreateObject(s.handle, append(dataKey(), pkcs11.NewAttribute(pkcs11.CKA_VALUE, material)))
	if err != nil {
		return nil, err
	}
	wrapped, err := s.module.WrapKey(s.handle, []*pkcs11.Mechanism{pkcs11.NewMechanism(mechanism, nil)}, kek, object)
	if ended := s.module.DestroyObject(s.handle, object); err == nil {
		err = ended
	}
	return wrapped, err
}

// wrapKW wraps with AES key wrap, with padding or without.
func (w *aesWrapper) wrapKW(ctx context.Context, how keyWrap, material, additional []byte) ([]byte, error) {
	switch {
	case len(additional) > 0:
		return nil, &wrap.InputError{Problem: fmt.Sprintf("%s cannot bind a key to a context, found %d bytes of additional data, expected none", how.name, len(additional))}
	case len(material) < wrap.MinSize || len(material) > wrap.MaxSize:
		return nil, &wrap.InputError{Problem: fmt.Sprintf("found a key of %d bytes, expected %d to %d", len(material), wrap.MinSize, wrap.MaxSize)}
	case len(material)%semiblock != 0 && !how.pads:
		return nil, &wrap.InputError{Problem: fmt.Sprintf("found a key of %d bytes, expected a multiple of %d for %s; %s wraps keys of other sizes", len(material), semiblock, how.name, algorithm.WrapAESKWP)}
	}
	return do(ctx, w.provider, func(s *session) ([]byte, error) {
		return with(s, w.name, func(kek pkcs11.ObjectHandle) ([]byte, error) {
			wrapped, err := s.wrapWith(how.mechanism, kek, material)
			if err != nil || len(material)%semiblock == 0 {
				return wrapped, err
			}
			// SoftHSM 2.6.1 appends zeros to such a key, and so wraps a longer key.
			again, err := s.unwrapWith(how.mechanism, kek, wrapped)
			if err != nil {
				return nil, err
			}
			defer clear(again)
			if subtle.ConstantTimeCompare(again, material) != 1 {
				return nil, &wrap.InputError{Problem: fmt.Sprintf("found a key of %d bytes, expected a multiple of %d, because the library of the token does not wrap keys of other sizes as they are", len(material), semiblock)}
			}
			return wrapped, nil
		})
	})
}

// unwrapKW is the inverse of wrapKW.
func (w *aesWrapper) unwrapKW(ctx context.Context, how keyWrap, wrapped, additional []byte) ([]byte, error) {
	if len(additional) > 0 || len(wrapped) < wrap.MinSize+semiblock || len(wrapped) > wrap.MaxSize+semiblock || len(wrapped)%semiblock != 0 {
		return nil, keys.ErrInvalidCiphertext
	}
	return do(ctx, w.provider, func(s *session) ([]byte, error) {
		return with(s, w.name, func(kek pkcs11.ObjectHandle) ([]byte, error) {
			unwrapped, err := s.unwrapWith(how.mechanism, kek, wrapped)
			if err == nil && (len(unwrapped) < wrap.MinSize || len(unwrapped) > wrap.MaxSize) {
				clear(unwrapped)
				return nil, keys.ErrInvalidCiphertext
			}
			return unwrapped, err
		})
	})
}

// unwrapWith is the inverse of wrapWith.
func (s *session) unwrapWith(mechanism uint, kek pkcs11.ObjectHandle, wrapped []byte) ([]byte, error) {
	object, err := s.module.UnwrapKey(s.handle, []*pkcs11.Mechanism{pkcs11.NewMechanism(mechanism, nil)}, kek, wrapped, dataKey())
	if err != nil {
		return nil, s.unprotected(err)
	}
	return s.take(object)
}
