// SPDX-License-Identifier: Apache-2.0

// Package keymanagers is the table of KMIP servers that tests run against. Each build tag adds one:
// keymanagers adds PyKMIP, and interop adds Cosmian KMS.
package keymanagers

import (
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/test/kmipserver"
)

// KMIP is a product that serves KMIP, with the features that it supports.
type KMIP struct {
	// Name is the name of the product and its version.
	Name string
	// Start starts servers on the loopback interface that serve the same keys. They end with the test.
	Start func(t testing.TB, servers int) *kmipserver.Servers

	// EllipticCurves reports whether the product makes elliptic curve key pairs.
	EllipticCurves bool
	// SignsAsAsked reports whether the product signs digests, and signs with PSS and the salt that it is asked for.
	SignsAsAsked bool
	// WritesTogether reports whether several servers with one database can make keys at the same time. Other products sometimes refuse that.
	WritesTogether bool
	// SendsDeactivated reports whether the product sends the bytes of keys that are deactivated. Such keys are needed for old data (KMIP
	// 1.4, section 3.22).
	SendsDeactivated bool
}

// kmip are the products, in the order of their files.
var kmip []KMIP

// EachKMIP runs a test against each product.
func EachKMIP(t *testing.T, test func(t *testing.T, product KMIP)) {
	t.Helper()
	for _, product := range kmip {
		t.Run(product.Name, func(t *testing.T) { test(t, product) })
	}
}
