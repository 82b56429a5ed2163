// SPDX-License-Identifier: Apache-2.0

//go:build !pkcs11

package pkcs11_test

import (
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pkcs11"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
)

func TestAProgramWithoutPKCS11SaysWhichOneHasIt(t *testing.T) {
	config := &providers.Config{Name: "hsm", Type: providers.PKCS11, PKCS11: &providers.PKCS11Settings{Module: "/lib.so", TokenLabel: "l"}}
	_, err := providers.Types{providers.PKCS11: pkcs11.Open}.Open(config, nil)
	if want := `key provider "hsm": this program was built without PKCS #11, expected one that was built by make build-pkcs11`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
