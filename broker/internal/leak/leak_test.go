// SPDX-License-Identifier: Apache-2.0

package leak

import "testing"

func TestAQuotationIsFound(t *testing.T) {
	const token = "s.0123456789abcdefghij"
	for sentence, test := range map[string]struct {
		text, secret string
		quoted       bool
	}{
		"the whole secret":           {"refused " + token + ".", token, true},
		"its beginning":              {"refused " + token[:12], token, true},
		"its end":                    {token[10:] + " is refused", token, true},
		"less than twelve bytes":     {"refused " + token[:11], token, false},
		"another text":               {"permission denied", token, false},
		"a short secret":             {"refused hunter2", "hunter2", true},
		"a short secret that is not": {"refused hunter", "hunter2", false},
		"no secret":                  {"refused", "", false},
		"no text":                    {"", token, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := In(test.text, nil, []byte(test.secret)); got != test.quoted {
				t.Errorf("found %v, expected %v", got, test.quoted)
			}
		})
	}
}
