// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

func TestAProfileIsAsStrongAsItsWeakestOperation(t *testing.T) {
	spec := &v1alpha1.ProfileSpec{API: v1alpha1.Operations{
		HashData:    &v1alpha1.HashData{HashAlg: "sha3-512"},
		EncryptData: &v1alpha1.EncryptData{EncryptAlg: "aes-gcm", KeySize: 192, NonceStrategy: "user-provided", TagLength: 128},
	}}
	want := render.Assessment{
		Strength: new(int32(192)), Weakest: "AES-192", FIPS: v1alpha1.FIPSPartly,
		Operations: []v1alpha1.OperationStatus{
			{Name: "HashData", Algorithm: "sha3-512", Strength: 256, Weakest: "SHA3-512", FIPS: v1alpha1.FIPSApproved},
			{Name: "EncryptData", Algorithm: "aes-gcm", Strength: 192, Weakest: "AES-192", FIPS: v1alpha1.FIPSNotApproved,
				FIPSReason: "the caller makes the nonce, which FIPS 140-3 does not approve for AES-GCM (implementation guidance C.H); choose NonceStrategy random"},
			{Name: "DecryptData", Algorithm: "aes-gcm", Strength: 192, Weakest: "AES-192", FIPS: v1alpha1.FIPSApproved},
		},
	}
	if diff := cmp.Diff(want, render.Assess("orders", spec)); diff != "" {
		t.Errorf("found (+) other than expected (-):\n%s", diff)
	}
}

func TestTheVerdictOfFIPSIsThatOfAllOperations(t *testing.T) {
	tests := map[string]struct {
		api  v1alpha1.Operations
		fips string
	}{
		"a digest is approved": {v1alpha1.Operations{HashData: &v1alpha1.HashData{HashAlg: "sha-256"}}, v1alpha1.FIPSApproved},
		"a signature that the validated module does not have is not": {v1alpha1.Operations{SignData: &v1alpha1.SignData{
			SigningMode: "post-quantum", SignAlg: "ml-dsa-65",
		}}, v1alpha1.FIPSNotApproved},
		"an invalid profile has none": {v1alpha1.Operations{HashData: &v1alpha1.HashData{HashAlg: "md5"}}, ""},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			if found := render.Assess("orders", &v1alpha1.ProfileSpec{API: test.api}); found.FIPS != test.fips {
				t.Errorf("found %+v", found)
			}
		})
	}
}
