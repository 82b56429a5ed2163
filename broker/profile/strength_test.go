// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/catalogue"
)

// oneProfile reads the profile with this API and checks that it is valid.
func oneProfile(t *testing.T, api string) *profile.Profile {
	t.Helper()
	text := []byte("- Name: P\n  API: {" + api + "}\n")
	if _, problems := profile.Compile(profile.FileName, text); len(problems) > 0 {
		t.Fatal(problems.Err())
	}
	doc, _ := profile.Parse(profile.FileName, text)
	return &doc.Profiles[0]
}

func certificateAPI(sign, issuer, subject string) string {
	return fmt.Sprintf("SignCertificate: {%s, Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 1h}, KeyConstraints: {Issuer: {%s}, Subject: {%s}}}", sign, issuer, subject)
}

func size(algorithm string, low int) string {
	high := map[string]int{"RSA": 16384, "ECDSA": 521, "Ed25519": 256}[algorithm]
	return fmt.Sprintf("%s: {MinKeySize: %d, MaxKeySize: %d}", algorithm, low, high)
}

// The numbers are from NIST SP 800-57 Part 1 Rev. 5, tables 2 and 3.
func dataKeyStrengths(strength, ofStreams string) string {
	var all []string
	for _, operation := range []string{"GenerateDataKey", "WrapKey", "UnwrapKey", "RewrapKey", "GetPublicKey"} {
		all = append(all, operation+" "+strength)
	}
	for _, operation := range []string{"EncryptStream", "DecryptStream"} {
		all = append(all, operation+" "+ofStreams)
	}
	return strings.Join(all, ", ")
}

func sessionStrengths(strength string) string {
	var all []string
	for _, operation := range []string{"InitSession", "OpenRequest", "SealReply", "CloseSession", "RekeySession"} {
		all = append(all, operation+" "+strength)
	}
	return strings.Join(all, ", ")
}

func TestTheStrengthOfAProfileIsThatOfTheWeakestItAllows(t *testing.T) {
	for name, c := range map[string]struct{ api, want string }{
		"SHA-256 resists collisions with half its length": {"HashData: {HashAlg: sha-256}", "HashData 128 SHA-256"},
		"SHA-512/256":                       {"HashData: {HashAlg: SHA-512/256}", "HashData 128 SHA-512/256"},
		"SHA-384":                           {"HashData: {HashAlg: sha-384}", "HashData 192 SHA-384"},
		"SHA3-384":                          {"HashData: {HashAlg: sha3-384}", "HashData 192 SHA3-384"},
		"SHA-512":                           {"HashData: {HashAlg: sha-512}", "HashData 256 SHA-512"},
		"SHA3-512":                          {"HashData: {HashAlg: sha3-512}", "HashData 256 SHA3-512"},
		"16 bytes of SHAKE128":              {"HashData: {HashAlg: shake-128}", "HashData 64 SHAKE-128"},
		"32 bytes of SHAKE256":              {"HashData: {HashAlg: shake-256}", "HashData 128 SHAKE-256"},
		"AES-128":                           {"EncryptData: {EncryptAlg: aes-gcm, KeySize: 128}", "EncryptData 128 AES-128, DecryptData 128 AES-128"},
		"AES-192":                           {"EncryptData: {EncryptAlg: aes-gcm, KeySize: 192}", "EncryptData 192 AES-192, DecryptData 192 AES-192"},
		"AES-256":                           {"EncryptData: {EncryptAlg: aes-gcm, KeySize: 256}", "EncryptData 256 AES-256, DecryptData 256 AES-256"},
		"a tag that is cut":                 {"EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, ShortTagLength: 96}", "EncryptData 96 tags of 96 bits, DecryptData 96 tags of 96 bits"},
		"a TagLength without effect":        {"EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, TagLength: 96}", "EncryptData 256 AES-256, DecryptData 256 AES-256"},
		"RSA without limits":                {"SignData: {SignAlg: rsa, HashAlg: sha-512}", "SignData 112 RSA keys of 2048 bits, VerifyData 112 RSA keys of 2048 bits"},
		"ECDSA without limits":              {"SignData: {SignAlg: ecdsa, HashAlg: sha-256}", "SignData 112 ECDSA keys of 224 bits, VerifyData 112 ECDSA keys of 224 bits"},
		"Ed25519":                           {"SignData: {SignAlg: ed25519}", "SignData 128 Ed25519, VerifyData 128 Ed25519"},
		"a digest weaker than its key":      {"SignData: {SignAlg: ecdsa, HashAlg: sha-256, KeyConstraints: {Issuer: {" + size("ECDSA", 521) + "}}}", "SignData 128 SHA-256, VerifyData 128 SHA-256"},
		"limits of their own to verify":     {"SignData: {SignAlg: rsa, HashAlg: sha-512, KeyConstraints: {Issuer: {" + size("RSA", 7680) + "}, Subject: {" + size("RSA", 3072) + "}}}", "SignData 192 RSA keys of 7680 bits, VerifyData 128 RSA keys of 3072 bits"},
		"RSA between two sizes":             {"SignData: {SignAlg: rsa-pss, HashAlg: sha-512, KeyConstraints: {Issuer: {" + size("RSA", 4096) + "}}}", "SignData 128 RSA keys of 4096 bits, VerifyData 128 RSA keys of 4096 bits"},
		"RSA of 15360 bits":                 {"SignData: {SignAlg: rsa, HashAlg: sha-512, KeyConstraints: {Issuer: {" + size("RSA", 15360) + "}}}", "SignData 256 RSA keys of 15360 bits, VerifyData 256 RSA keys of 15360 bits"},
		"RSA that is too short":             {"SignData: {SignAlg: rsa, HashAlg: sha-512, KeyConstraints: {Issuer: {" + size("RSA", 1024) + "}}}", "SignData 80 RSA keys of 1024 bits, VerifyData 80 RSA keys of 1024 bits"},
		"ML-DSA-44":                         {"SignData: {SigningMode: post-quantum, SignAlg: ml-dsa-44}", "SignData 128 ML-DSA-44, VerifyData 128 ML-DSA-44"},
		"ML-DSA-87":                         {"SignData: {SigningMode: post-quantum, SignAlg: ML-DSA-87}", "SignData 256 ML-DSA-87, VerifyData 256 ML-DSA-87"},
		"a hybrid is as its stronger part":  {"SignData: {SigningMode: hybrid, SignAlg: ed25519+ml-dsa-65}", "SignData 192 ML-DSA-65, VerifyData 192 ML-DSA-65"},
		"even where that is the classical":  {"SignData: {SigningMode: hybrid, SignAlg: ecdsa+ml-dsa-44, HashAlg: sha-512, KeyConstraints: {Issuer: {" + size("ECDSA", 384) + "}}}", "SignData 192 ECDSA keys of 384 bits, VerifyData 192 ECDSA keys of 384 bits"},
		"certificates by the issuer's key":  {certificateAPI("SignAlg: rsa, HashAlg: sha-512", size("RSA", 3072), size("RSA", 7680)), "SignCertificate 128 RSA keys of 3072 bits"},
		"certificates by the digest":        {certificateAPI("SignAlg: ecdsa, HashAlg: sha-256", size("ECDSA", 384), size("ECDSA", 384)), "SignCertificate 128 SHA-256"},
		"certificates by the subject's key": {certificateAPI("SignAlg: ecdsa, HashAlg: sha-512", size("ECDSA", 521), size("ECDSA", 384)+", "+size("RSA", 2048)), "SignCertificate 112 RSA keys of 2048 bits"},
		"certificates of Ed25519":           {certificateAPI("SignAlg: ed25519", size("Ed25519", 256), size("ECDSA", 384)), "SignCertificate 128 Ed25519"},
		"data keys":                         {"DataKeys: {WrapAlgs: [hpke-p-521], KeySize: 192, KeyIds: [{Id: k}]}", dataKeyStrengths("192 data keys of 192 bits", "256 AES-256")},
		"sessions":                          {"Session: {Protocols: [session-v1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM}", sessionStrengths("128 ECDH P-256")},
		"sessions that RSA signs":           {"Session: {Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: rsa, HashAlg: sha-256, KeyIds: [{Id: k}]}", sessionStrengths("128 ECDH P-256")},
		"sessions with X-Wing":              {"Session: {Protocols: [session-hpke-x-wing], EncryptAlg: A256GCM, SignAlg: ml-dsa-65, KeyIds: [{Id: k}]}", sessionStrengths("128 MLKEM768-X25519")},
		"the weakest wrapping algorithm":    {"DataKeys: {WrapAlgs: [aes-gcm, rsa-oaep-sha-256], KeySize: 256, KeyIds: [{Id: k}]}", dataKeyStrengths("112 RSA keys of 2048 bits", "112 RSA keys of 2048 bits")},
		"of all operations the weakest":     {"HashData: {HashAlg: sha-512}, EncryptData: {EncryptAlg: aes-gcm, KeySize: 192}", "HashData 256 SHA-512, EncryptData 192 AES-192, DecryptData 192 AES-192"},
	} {
		t.Run(name, func(t *testing.T) {
			all := profile.StrengthOf(oneProfile(t, c.api))
			var got []string
			lowest := all[0]
			for _, s := range all[:len(all)-1] {
				got = append(got, fmt.Sprint(s.Operation, " ", s.Bits, " ", s.Limit))
				if s.Bits < lowest.Bits {
					lowest = s
				}
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("%s, want %s", text, c.want)
			}
			whole := all[len(all)-1]
			if lowest.Operation = ""; whole != lowest {
				t.Errorf("the whole profile: %+v, want %+v", whole, lowest)
			}
		})
	}
}

func TestTheCatalogueHasTheStrengthItsNamesPromise(t *testing.T) {
	doc, problems := profile.Parse(profile.FileName, catalogue.Profiles)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for i := range doc.Profiles {
		all := profile.StrengthOf(&doc.Profiles[i])
		whole := all[len(all)-1]
		got[doc.Profiles[i].Name] = fmt.Sprint(whole.Bits, " ", whole.Limit)
	}
	if diff := cmp.Diff(map[string]string{
		"Default":           "112 RSA keys of 2048 bits",
		"KSA-MODERATE-2020": "128 RSA keys of 3072 bits",
		"KSA-ADVANCED-2020": "256 SHA3-512",
		"FIPS-140-3-128bit": "128 SHA-256",
		"FIPS-140-3-192bit": "192 SHA-384",
		"FIPS-140-3-256bit": "256 SHA-512",
	}, got); diff != "" {
		t.Errorf("strength (-want +got):\n%s", diff)
	}
}

func TestTheKeysThatSignSessionsHave128Bits(t *testing.T) {
	limits := profile.SessionKeyLimits()
	for _, key := range algorithm.ListedKeys() {
		size, listed := limits.Range(key.Name)
		if strength := profile.KeyStrength(key.Name, size.MinKeySize); !listed || strength.Bits != 128 || size.MaxKeySize != key.MaxSize {
			t.Errorf("%s keys of %d to %d bits have %d bits", key.Name, size.MinKeySize, size.MaxKeySize, strength.Bits)
		}
	}
}
