// SPDX-License-Identifier: Apache-2.0

package catalogue_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/catalogue"
)

func TestEveryProfileOfTheCatalogueIsServedWithItsHash(t *testing.T) {
	set, problems := profile.Compile(profile.FileName, catalogue.Profiles)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, name := range set.Names() {
		p, _ := set.Lookup(name)
		got[name] = p.Hash().Algorithm().String()
	}
	want := map[string]string{
		"Default":           "sha3-512",
		"KSA-MODERATE-2020": "sha-384",
		"KSA-ADVANCED-2020": "sha3-512",
		"FIPS-140-3-128bit": "sha-256",
		"FIPS-140-3-192bit": "sha-384",
		"FIPS-140-3-256bit": "sha-512",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("catalogue (-want +got):\n%s", diff)
	}
}

func TestTheCatalogueNeedsNoFieldThatReleasedBrokersDoNotKnow(t *testing.T) {
	doc, problems := profile.Parse(profile.FileName, catalogue.Profiles)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	for _, p := range doc.Profiles {
		if v := p.FormatVersion(); v != 0 {
			t.Errorf("profile %q needs format version %d, want 0", p.Name, v)
		}
	}
}
