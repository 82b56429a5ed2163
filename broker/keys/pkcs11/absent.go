// SPDX-License-Identifier: Apache-2.0

//go:build !pkcs11

package pkcs11

import (
	"errors"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
)

// Open fails, because this program was built without PKCS #11.
func Open(*providers.Config, providers.Credentials) (providers.Provider, error) {
	return nil, errors.New("this program was built without PKCS #11, expected one that was built by make build-pkcs11")
}
