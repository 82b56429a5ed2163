// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package keymanagers

import "github.com/crypto-broker/crypto-broker-operator/test/pykmip"

func init() {
	kmip = append(kmip, KMIP{Name: "PyKMIP " + pykmip.Version, Start: pykmip.Start, WritesTogether: true, SendsDeactivated: true})
}
