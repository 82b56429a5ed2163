// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/test/conformance/cavs"
)

func TestAMessageOfPartsOfBytesIsAnError(t *testing.T) {
	for sentence, r := range map[string]cavs.Record{
		"of seven bits":            {"Len": "7", "Msg": "00"},
		"shorter than its length":  {"Len": "16", "Msg": "00"},
		"that is no hexadecimal":   {"Len": "8", "Msg": "xy"},
		"of a length of no number": {"Len": "", "Msg": "00"},
	} {
		if _, _, err := hashed(r); err == nil {
			t.Errorf("a message %s was read", sentence)
		}
	}
}
