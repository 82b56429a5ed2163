// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/catalogue"
)

// assessed lists an operation a line.
func assessed(p *profile.Compiled) []string {
	var lines []string
	for _, a := range p.Assessments() {
		served := "served"
		if a.Refused {
			served = "refused"
		}
		lines = append(lines, fmt.Sprint(a.Operation, " ", a.Algorithm, " ", a.Strength.Bits, " ", served))
	}
	return lines
}

func TestTheCatalogueLoadsWhereFIPSIsRequiredLessWhatIsNotApproved(t *testing.T) {
	set, problems := profile.Compile(profile.FileName, catalogue.Profiles, profile.RequireFIPS())
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, name := range set.Names() {
		p, _ := set.Lookup(name)
		got[name] = assessed(p)
	}
	want := map[string][]string{
		"Default":           {"HashData sha3-512 256 served", "SignCertificate ecdsa-with-SHA512 112 refused"},
		"KSA-MODERATE-2020": {"HashData sha-384 192 served", "SignCertificate sha384WithRSAEncryption 128 refused"},
		"KSA-ADVANCED-2020": {"HashData sha3-512 256 served", "SignCertificate ecdsa-with-SHA512 256 refused"},
		"FIPS-140-3-128bit": {"HashData sha-256 128 served", "SignCertificate sha256WithRSAEncryption 128 refused", "EncryptData aes-gcm 128 refused", "DecryptData aes-gcm 128 served"},
		"FIPS-140-3-192bit": {"HashData sha-384 192 served", "SignCertificate ecdsa-with-SHA384 192 refused", "EncryptData aes-gcm 192 refused", "DecryptData aes-gcm 192 served"},
		"FIPS-140-3-256bit": {"HashData sha-512 256 served", "SignCertificate ecdsa-with-SHA512 256 refused", "EncryptData aes-gcm 256 refused", "DecryptData aes-gcm 256 served"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("catalogue (-want +got):\n%s", diff)
	}
}

func TestNothingIsRefusedWhereFIPSIsNotRequired(t *testing.T) {
	set, _ := profile.Compile(profile.FileName, catalogue.Profiles)
	for _, name := range set.Names() {
		p, _ := set.Lookup(name)
		for _, a := range p.Assessments() {
			if a.Refused {
				t.Errorf("%s of %s is refused", a.Operation, name)
			}
		}
	}
}

func TestAProfileWithNothingLeftIsRefusedWhereFIPSIsRequired(t *testing.T) {
	file := []byte(`- Name: Good
  API: {HashData: {HashAlg: sha-256}}
- Name: Later
  API:
    SignData: {SigningMode: post-quantum, SignAlg: ml-dsa-65}
- Name: Wrong anyway
  API: {HashData: {HashAlg: md5}}
`)
	set, problems := profile.Compile(profile.FileName, file, profile.RequireFIPS())
	want := profile.Problems{
		{
			File: "Profiles.yaml", Line: 4, Column: 3, Profile: "Later", Field: "API",
			Message: "has no operation that FIPS 140-3 approves, expected at least one, because this broker serves no others " +
				"(SignData: SignAlg has ml-dsa-65, which the validated module does not have; VerifyData: SignAlg has ml-dsa-65, which the validated module does not have)",
		},
		problems[len(problems)-1],
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Good"}, set.Names()); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
	if set, _ := profile.Compile(profile.FileName, file); set.Len() != 2 {
		t.Errorf("where it is not required %v are served", set.Names())
	}
}

func TestTheStrengthOfAProfileIsKept(t *testing.T) {
	set, _ := profile.Compile(profile.FileName, catalogue.Profiles)
	p, _ := set.Lookup("Default")
	if want := (profile.Strength{Bits: 112, Limit: "RSA keys of 2048 bits"}); p.Strength() != want {
		t.Errorf("%+v, want %+v", p.Strength(), want)
	}
}
