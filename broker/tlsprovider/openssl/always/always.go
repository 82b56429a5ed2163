// SPDX-License-Identifier: Apache-2.0

// Package always makes a program use OpenSSL from its start. It is for tests of other packages, which
// then run with OpenSSL; see the script test beside this folder.
package always

import (
	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
	_ "github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider/openssl" // registers OpenSSL
)

func init() {
	if err := tlsprovider.Use(tlsprovider.OpenSSL, false); err != nil {
		panic(err)
	}
}
