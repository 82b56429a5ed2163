// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"strings"
	"testing"
)

func TestARecordHasTheFieldsOfItsSection(t *testing.T) {
	const file = `# CAVS
[Keylen = 128]
[IVlen = 96]

Count = 0
Key = 00
PT =

Count = 1
Key = 01
FAIL

[Keylen = 256]
Count = 0
Key = 02`
	got, err := parseRecords(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	want := []record{
		{"Keylen": "128", "IVlen": "96", "Count": "0", "Key": "00", "PT": ""},
		{"Keylen": "128", "IVlen": "96", "Count": "1", "Key": "01", "FAIL": ""},
		{"Keylen": "256", "Count": "0", "Key": "02"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAMessageOfPartsOfBytesIsAnError(t *testing.T) {
	for sentence, r := range map[string]record{
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
