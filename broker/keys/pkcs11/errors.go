// SPDX-License-Identifier: Apache-2.0

//go:build pkcs11

package pkcs11

import (
	"errors"
	"fmt"

	"github.com/miekg/pkcs11"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// aeadFailed is CKR_AEAD_DECRYPT_FAILED of PKCS #11 3.0.
const aeadFailed = 0x35

// kinds maps codes of a library to errors of providers. All other codes become
// [keys.ErrUnusable].
var kinds = map[pkcs11.Error]error{
	pkcs11.CKR_PIN_INCORRECT:                  keys.ErrDenied,
	pkcs11.CKR_PIN_INVALID:                    keys.ErrDenied,
	pkcs11.CKR_PIN_LEN_RANGE:                  keys.ErrDenied,
	pkcs11.CKR_PIN_EXPIRED:                    keys.ErrDenied,
	pkcs11.CKR_PIN_LOCKED:                     keys.ErrDenied,
	pkcs11.CKR_USER_PIN_NOT_INITIALIZED:       keys.ErrDenied,
	pkcs11.CKR_KEY_FUNCTION_NOT_PERMITTED:     keys.ErrDenied,
	pkcs11.CKR_ACTION_PROHIBITED:              keys.ErrDenied,
	pkcs11.CKR_ENCRYPTED_DATA_INVALID:         keys.ErrInvalidCiphertext,
	pkcs11.CKR_ENCRYPTED_DATA_LEN_RANGE:       keys.ErrInvalidCiphertext,
	pkcs11.CKR_WRAPPED_KEY_INVALID:            keys.ErrInvalidCiphertext,
	pkcs11.CKR_WRAPPED_KEY_LEN_RANGE:          keys.ErrInvalidCiphertext,
	aeadFailed:                                keys.ErrInvalidCiphertext,
	pkcs11.CKR_KEY_HANDLE_INVALID:             keys.ErrNotFound,
	pkcs11.CKR_OBJECT_HANDLE_INVALID:          keys.ErrNotFound,
	pkcs11.CKR_SESSION_COUNT:                  keys.ErrThrottled,
	pkcs11.CKR_CRYPTOKI_NOT_INITIALIZED:       keys.ErrUnavailable,
	pkcs11.CKR_DEVICE_ERROR:                   keys.ErrUnavailable,
	pkcs11.CKR_DEVICE_MEMORY:                  keys.ErrUnavailable,
	pkcs11.CKR_DEVICE_REMOVED:                 keys.ErrUnavailable,
	pkcs11.CKR_FUNCTION_CANCELED:              keys.ErrUnavailable,
	pkcs11.CKR_FUNCTION_FAILED:                keys.ErrUnavailable,
	pkcs11.CKR_GENERAL_ERROR:                  keys.ErrUnavailable,
	pkcs11.CKR_HOST_MEMORY:                    keys.ErrUnavailable,
	pkcs11.CKR_OPERATION_ACTIVE:               keys.ErrUnavailable,
	pkcs11.CKR_OPERATION_NOT_INITIALIZED:      keys.ErrUnavailable,
	pkcs11.CKR_SESSION_CLOSED:                 keys.ErrUnavailable,
	pkcs11.CKR_SESSION_HANDLE_INVALID:         keys.ErrUnavailable,
	pkcs11.CKR_SLOT_ID_INVALID:                keys.ErrUnavailable,
	pkcs11.CKR_TOKEN_NOT_PRESENT:              keys.ErrUnavailable,
	pkcs11.CKR_TOKEN_NOT_RECOGNIZED:           keys.ErrUnavailable,
	pkcs11.CKR_USER_NOT_LOGGED_IN:             keys.ErrUnavailable, // the login ended with a session
	pkcs11.CKR_USER_ANOTHER_ALREADY_LOGGED_IN: keys.ErrDenied,
}

// typed returns the error of a provider for a code of a library. It returns other errors
// unchanged.
func typed(err error) error {
	var code pkcs11.Error
	if !errors.As(err, &code) || errors.Is(err, keys.ErrInvalidCiphertext) {
		return err
	}
	kind := kinds[code]
	if kind == nil {
		kind = keys.ErrUnusable
	}
	return fmt.Errorf("%w: the library answered %s", kind, code.Error()) // once only: the code is not found again
}

// pinRefused reports whether the token did not accept a PIN.
func pinRefused(err error) bool {
	return errors.Is(err, keys.ErrDenied) && !errors.Is(err, errOtherPIN)
}
