// SPDX-License-Identifier: Apache-2.0

package cavs

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
	want := []Record{
		{"Keylen": "128", "IVlen": "96", "Count": "0", "Key": "00", "PT": ""},
		{"Keylen": "128", "IVlen": "96", "Count": "1", "Key": "01", "FAIL": ""},
		{"Keylen": "256", "Count": "0", "Key": "02"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
