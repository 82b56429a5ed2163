// SPDX-License-Identifier: Apache-2.0

//go:build interop

package keymanagers

import "github.com/crypto-broker/crypto-broker-operator/test/cosmian"

func init() {
	kmip = append(kmip, KMIP{
		Name: "Cosmian KMS " + cosmian.Version, Start: cosmian.Start,
		EllipticCurves: true, SignsAsAsked: true,
	})
}
