// SPDX-License-Identifier: Apache-2.0

//go:build pkcs11

package pkcs11

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/miekg/pkcs11"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// maxObjects is the maximum number of objects with one label that are read: keys, their public
// keys and certificates, of all versions.
const maxObjects = 256

// objectName identifies an object of a token permanently. A handle identifies it within one
// session.
type objectName struct {
	class     uint
	label, id string
}

// version returns the name of the version that the object belongs to.
func (o objectName) version() string { return hex.EncodeToString([]byte(o.id)) }

// isKey reports whether the object is a key that never leaves the token.
func (o objectName) isKey() bool {
	return o.class == pkcs11.CKO_SECRET_KEY || o.class == pkcs11.CKO_PRIVATE_KEY
}

func (s *session) search(template []*pkcs11.Attribute, limit int) ([]pkcs11.ObjectHandle, error) {
	if err := s.module.FindObjectsInit(s.handle, template); err != nil {
		return nil, err
	}
	found, _, err := s.module.FindObjects(s.handle, limit)
	if ended := s.module.FindObjectsFinal(s.handle); err == nil {
		err = ended
	}
	return found, err
}

// labeled returns the objects with a label.
func (s *session) labeled(label string) ([]objectName, error) {
	handles, err := s.search([]*pkcs11.Attribute{pkcs11.NewAttribute(pkcs11.CKA_LABEL, label)}, maxObjects+1)
	if err != nil {
		return nil, err
	}
	if len(handles) > maxObjects {
		return nil, fmt.Errorf("%w: more than %d objects have the label %s, expected fewer", keys.ErrUnusable, maxObjects, label)
	}
	var names []objectName
	for _, handle := range handles {
		values, err := s.attributes(handle, pkcs11.CKA_CLASS)
		if err != nil {
			return nil, err
		}
		class := number(values[0])
		if class > pkcs11.CKO_SECRET_KEY || class == pkcs11.CKO_DATA {
			continue // data, parameters and the like, which need have no CKA_ID
		}
		if values, err = s.attributes(handle, pkcs11.CKA_ID); err != nil {
			return nil, err
		}
		names = append(names, objectName{class, label, string(values[0])})
	}
	return names, nil
}

// attributes returns values of an object.
func (s *session) attributes(object pkcs11.ObjectHandle, types ...uint) ([][]byte, error) {
	wanted := make([]*pkcs11.Attribute, len(types))
	for i, kind := range types {
		wanted[i] = pkcs11.NewAttribute(kind, nil)
	}
	found, err := s.module.GetAttributeValue(s.handle, object, wanted)
	if err != nil {
		return nil, err
	}
	values := make([][]byte, len(types))
	for i, attribute := range found {
		values[i] = attribute.Value
	}
	return values, nil
}

// number returns a CK_ULONG.
func number(value []byte) uint {
	switch len(value) {
	case 8:
		return uint(binary.NativeEndian.Uint64(value))
	case 4:
		return uint(binary.NativeEndian.Uint32(value))
	}
	return ^uint(0)
}

// find returns the handle of an object. again reports whether the session already had the handle,
// so that it may not be valid any more.
func (s *session) find(name objectName) (handle pkcs11.ObjectHandle, again bool, err error) {
	if handle, again = s.objects[name]; again {
		return handle, true, nil
	}
	found, err := s.search([]*pkcs11.Attribute{
		pkcs11.NewAttribute(pkcs11.CKA_CLASS, name.class), pkcs11.NewAttribute(pkcs11.CKA_LABEL, name.label), pkcs11.NewAttribute(pkcs11.CKA_ID, []byte(name.id)),
	}, 2)
	switch {
	case err != nil:
		return 0, false, err
	case len(found) == 0:
		return 0, false, fmt.Errorf("%w: the token has no version %q of %s any more", keys.ErrNotFound, name.version(), name.label)
	case len(found) > 1:
		return 0, false, errTwice(name)
	}
	if len(s.objects) >= maxObjects {
		clear(s.objects)
	}
	s.objects[name] = found[0]
	return found[0], false, nil
}

func errTwice(name objectName) error {
	return fmt.Errorf("%w: two keys of the token have the label %s and the same CKA_ID %q, expected different ones", keys.ErrUnusable, name.label, name.version())
}

// with calls a function with the handle of an object.
func with[T any](s *session, name objectName, use func(pkcs11.ObjectHandle) (T, error)) (value T, err error) {
	handle, again, err := s.find(name)
	if err != nil {
		return value, err
	}
	value, err = use(handle)
	if again && isCode(err, pkcs11.CKR_KEY_HANDLE_INVALID, pkcs11.CKR_OBJECT_HANDLE_INVALID, pkcs11.CKR_WRAPPING_KEY_HANDLE_INVALID, pkcs11.CKR_UNWRAPPING_KEY_HANDLE_INVALID) {
		delete(s.objects, name)
		if handle, _, err = s.find(name); err == nil {
			value, err = use(handle)
		}
	}
	return value, err
}

// newer compares versions as numbers.
func newer(a, b objectName) int {
	x, y := bytes.TrimLeft([]byte(a.id), "\x00"), bytes.TrimLeft([]byte(b.id), "\x00")
	return cmp.Or(cmp.Compare(len(x), len(y)), bytes.Compare(x, y))
}
