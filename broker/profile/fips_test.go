// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	stdcmp "cmp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/catalogue"
)

const (
	givenNonce = "the caller makes the nonce, which FIPS 140-3 does not approve for AES-GCM (implementation guidance C.H); choose NonceStrategy random"
	oldSKI     = "SKIHashAlg is SHA-1, which FIPS 140-3 does not approve; choose another one"
	shortRSA   = "KeyConstraints allow RSA keys below 2048 bits, which FIPS 186-5 does not approve"
)

func verdicts(p *profile.Profile) map[string]string {
	all := map[string]string{}
	for _, v := range profile.FIPSVerdicts(p) {
		all[v.Operation] = v.Reason
		if v.Approved() != (v.Reason == "") {
			panic("a verdict contradicts its reason")
		}
	}
	return all
}

// dataKeyVerdicts are the verdicts on the operations with data keys. The encryption of streams is
// not in the module.
func dataKeyVerdicts(reason string) map[string]string {
	all := map[string]string{"EncryptStream": stdcmp.Or(reason, "it encrypts with aes256-gcm-hkdf-64kb, which the validated module does not have")}
	for _, operation := range []string{"GenerateDataKey", "WrapKey", "UnwrapKey", "RewrapKey", "GetPublicKey", "DecryptStream"} {
		all[operation] = reason
	}
	return all
}

// sessionVerdicts are the verdicts on the operations with sessions.
func sessionVerdicts(reason string) map[string]string {
	return map[string]string{"InitSession": reason, "OpenRequest": reason, "SealReply": reason, "CloseSession": reason, "RekeySession": reason}
}

func TestTheFIPSVerdictOfAnOperation(t *testing.T) {
	const ski = ", SKIHashAlg: sha-256"
	for name, c := range map[string]struct {
		api  string
		want map[string]string
	}{
		"digests are approved":                     {"HashData: {HashAlg: shake-128}", map[string]string{"HashData": ""}},
		"a nonce of the caller is not":             {"EncryptData: {EncryptAlg: aes-gcm, KeySize: 128, NonceStrategy: user-provided}", map[string]string{"EncryptData": givenNonce, "DecryptData": ""}},
		"nor where nothing is said of it":          {"EncryptData: {EncryptAlg: aes-gcm, KeySize: 256}", map[string]string{"EncryptData": givenNonce, "DecryptData": ""}},
		"a nonce of the broker is":                 {"EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: Random}", map[string]string{"EncryptData": "", "DecryptData": ""}},
		"a tag that is cut is":                     {"EncryptData: {EncryptAlg: aes-gcm, KeySize: 128, NonceStrategy: random, ShortTagLength: 96}", map[string]string{"EncryptData": "", "DecryptData": ""}},
		"signatures of FIPS 186-5 are":             {"SignData: {SignAlg: rsa-pss, HashAlg: sha3-256}", map[string]string{"SignData": "", "VerifyData": ""}},
		"Ed25519 is one of them":                   {"SignData: {SignAlg: ed25519}", map[string]string{"SignData": "", "VerifyData": ""}},
		"short RSA keys are not":                   {"SignData: {SignAlg: rsa, HashAlg: sha-256, KeyConstraints: {Issuer: {" + size("RSA", 3072) + "}, Subject: {" + size("RSA", 1024) + "}}}", map[string]string{"SignData": "", "VerifyData": shortRSA}},
		"ML-DSA is not in the module":              {"SignData: {SigningMode: post-quantum, SignAlg: ml-dsa-65}", map[string]string{"SignData": "SignAlg has ml-dsa-65, which the validated module does not have", "VerifyData": "SignAlg has ml-dsa-65, which the validated module does not have"}},
		"nor are hybrids with it":                  {"SignData: {SigningMode: hybrid, SignAlg: ed25519+ML-DSA-44}", map[string]string{"SignData": "SignAlg has ml-dsa-44, which the validated module does not have", "VerifyData": "SignAlg has ml-dsa-44, which the validated module does not have"}},
		"sessions are":                             {"Session: {Protocols: [session-v1, session-v2], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM}", sessionVerdicts("")},
		"native sessions are":                      {"Session: {Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ecdsa, HashAlg: sha-256, KeyIds: [{Id: k}]}", sessionVerdicts("")},
		"those with X-Wing are not":                {"Session: {Protocols: [session-hpke-p256, session-hpke-x-wing], EncryptAlg: A256GCM, SignAlg: ecdsa, HashAlg: sha-256, KeyIds: [{Id: k}]}", sessionVerdicts("Protocols has session-hpke-x-wing, which FIPS 140-3 does not approve")},
		"nor those that ML-DSA signs":              {"Session: {Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ml-dsa-65, KeyIds: [{Id: k}]}", sessionVerdicts("SignAlg has ml-dsa-65, which the validated module does not have")},
		"data keys with AES-GCM are":               {"DataKeys: {WrapAlgs: [aes-gcm, rsa-oaep-sha-256], KeySize: 256, KeyIds: [{Id: k}]}", dataKeyVerdicts("")},
		"data keys with AES key wrap are not":      {"DataKeys: {WrapAlgs: [aes-gcm, aes-kw], KeySize: 256, KeyIds: [{Id: k}]}", dataKeyVerdicts("WrapAlgs has aes-kw, which the validated module does not have")},
		"nor those with OAEP and SHA-1":            {"DataKeys: {WrapAlgs: [rsa-oaep-sha-1], KeySize: 256, KeyIds: [{Id: k}]}", dataKeyVerdicts("WrapAlgs has rsa-oaep-sha-1, which FIPS 140-3 does not approve")},
		"a key identifier of SHA-1 is not":         {certificateAPI("SignAlg: ecdsa, HashAlg: sha-256, SKIHashAlg: SHA-1", size("ECDSA", 256), size("ECDSA", 256)), map[string]string{"SignCertificate": oldSKI}},
		"nor is the one that is the default":       {certificateAPI("SignAlg: ecdsa, HashAlg: sha-256", size("ECDSA", 256), size("ECDSA", 256)), map[string]string{"SignCertificate": oldSKI}},
		"certificates with another one are":        {certificateAPI("SignAlg: ecdsa, HashAlg: sha-256"+ski, size("ECDSA", 256), size("ECDSA", 256)), map[string]string{"SignCertificate": ""}},
		"nor certificates for requests with SHA-1": {certificateAPI("SignAlg: ecdsa, HashAlg: sha-256, AllowSHA1Requests: true"+ski, size("ECDSA", 256), size("ECDSA", 256)), map[string]string{"SignCertificate": "AllowSHA1Requests allows requests that are signed with SHA-1, which FIPS 140-3 does not approve"}},
		"nor those for short keys":                 {certificateAPI("SignAlg: ecdsa, HashAlg: sha-256"+ski, size("ECDSA", 256), size("RSA", 1024)), map[string]string{"SignCertificate": shortRSA}},
		"certificates of short issuers aren't":     {certificateAPI("SignAlg: rsa, HashAlg: sha-256"+ski, size("RSA", 1024), size("ECDSA", 256)), map[string]string{"SignCertificate": shortRSA}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, verdicts(oneProfile(t, c.api))); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheFIPSProfilesOfTheCatalogueLoseWhatTheyMust(t *testing.T) {
	doc, problems := profile.Parse(profile.FileName, catalogue.Profiles)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"HashData": "", "SignCertificate": oldSKI, "EncryptData": givenNonce, "DecryptData": ""}
	for i := range doc.Profiles {
		if p := &doc.Profiles[i]; p.API.EncryptData != nil {
			if diff := cmp.Diff(want, verdicts(p)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", p.Name, diff)
			}
		}
	}
}
