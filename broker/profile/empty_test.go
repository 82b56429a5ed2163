// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

func TestAFileWithoutProfilesIsEmpty(t *testing.T) {
	written, err := profile.Marshal(&profile.Document{})
	if err != nil {
		t.Fatal(err)
	}
	for sentence, test := range map[string]struct {
		file string
		want bool
	}{
		"what the operator writes":          {string(written), true},
		"a bare list":                       {"[]", true},
		"a map with settings":               {"Settings: {CryptoLibrary: native}\nProfiles: []\n", true},
		"not one with a profile":            {"- Name: P\n  API: {HashData: {HashAlg: sha-256}}\n", false},
		"nor with one that is refused":      {"- Name: P\n  API: {HashData: {HashAlg: rot13}}\n", false},
		"nor a map with a profile":          {"FormatVersion: 1\nProfiles:\n  - Name: P\n    API: {HashData: {HashAlg: sha-256}}\n", false},
		"nor what a broker refuses unread":  {"", false},
		"nor what is no list":               {"set", false},
		"nor what has keys that it may not": {"Profiles: []\nMore: 1\n", false},
		"nor a long one, unread":            {"[]\n" + strings.Repeat("#\n", 200), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := profile.Empty([]byte(test.file)); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
