// SPDX-License-Identifier: Apache-2.0

package planted

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

func TestASecretIsFoundInEachForm(t *testing.T) {
	var s Secrets
	secret := s.Text("key", 32)
	binary := []byte{0, 0xff, 0x22, 0x80, 0x0a, 0xfe, 0x7f, 0x5c, 0xc3, 0x28, 0x81, 0x01}
	s.Add("binary", binary)
	numbers, err := json.Marshal([32]byte([]byte(secret)))
	if err != nil {
		t.Fatal(err)
	}
	for sentence, test := range map[string]struct{ text, name string }{
		"as it is":                          {"the key is " + secret + ".", "key"},
		"its first half":                    {secret[:16], "key"},
		"its second half":                   {secret[16:], "key"},
		"quoted":                            {fmt.Sprintf("%q", "x"+secret), "key"},
		"in hexadecimal":                    {hex.EncodeToString([]byte("x" + secret)), "key"},
		"in capital hexadecimal":            {strings.ToUpper(hex.EncodeToString([]byte(secret))), "key"},
		"in base64":                         {base64.StdEncoding.EncodeToString([]byte(secret)), "key"},
		"in base64, one byte later":         {base64.StdEncoding.EncodeToString([]byte("x" + secret + "yz")), "key"},
		"in base64, two bytes later":        {base64.RawStdEncoding.EncodeToString([]byte("xx" + secret)), "key"},
		"in base64 for addresses":           {base64.URLEncoding.EncodeToString([]byte(secret)), "key"},
		"a list of Go":                      {fmt.Sprintf("%v", []byte(secret)), "key"},
		"a list of JSON":                    {string(numbers), "key"},
		"an attribute of a line":            {fmt.Sprint(slog.Any("key", []byte(secret))), "key"},
		"binary as it is":                   {"x" + string(binary) + "y", "binary"},
		"binary, quoted":                    {fmt.Sprintf("%q", binary), "binary"},
		"binary in base64":                  {base64.StdEncoding.EncodeToString(append([]byte{1, 2}, binary...)), "binary"},
		"binary in base64 for addresses":    {base64.RawURLEncoding.EncodeToString(append([]byte{1}, binary...)), "binary"},
		"binary in hexadecimal, with bytes": {hex.EncodeToString(append([]byte{1}, binary...)), "binary"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if found := s.Find(test.text); !slices.Equal(found, []string{test.name}) {
				t.Errorf("found %q in %q, expected %q", found, test.text, test.name)
			}
		})
	}
	if found := s.Find("a line of the log with another text, AAAAAAAAAAAAAAAAAAAAAAAAAAAA " + base64.StdEncoding.EncodeToString(make([]byte, 99))); len(found) > 0 {
		t.Errorf("found %q in a text without secrets", found)
	}
}
