// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"crypto"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

func compiled(t *testing.T, text string) *profile.Compiled {
	t.Helper()
	set, problems := profile.Compile(profile.FileName, []byte(text))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	p, _ := set.Lookup("P")
	return p
}

func TestThePolicyOfEncryption(t *testing.T) {
	for name, c := range map[string]struct {
		api         string
		key, tag    int
		randomNonce bool
	}{
		"as little as can be said":                   {"EncryptAlg: aes-gcm, KeySize: 128", 16, 16, false},
		"as released brokers write":                  {"EncryptAlg: aes-gcm, KeySize: 192, NonceStrategy: user-provided, TagLength: 96", 24, 16, false},
		"a tag that is cut":                          {"EncryptAlg: aes-gcm, KeySize: 192, ShortTagLength: 96", 24, 12, false},
		"a tag that is cut, whatever TagLength says": {"EncryptAlg: aes-gcm, KeySize: 192, TagLength: 128, ShortTagLength: 112", 24, 14, false},
		"the broker's own nonce":                     {"EncryptAlg: AES-GCM, KeySize: 256, NonceStrategy: RANDOM, ShortTagLength: 104", 32, 13, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := compiled(t, "- Name: P\n  API: {EncryptData: {"+c.api+"}}\n")
			policy := p.Cipher()
			if policy.Algorithm() != "aes-gcm" || policy.KeySize() != c.key || policy.TagSize() != c.tag || policy.RandomNonce() != c.randomNonce {
				t.Errorf("%+v", policy)
			}
			if policy.Keys() != nil || p.Signature() != nil || p.Hash() != nil {
				t.Error("the profile has more than it says")
			}
		})
	}
}

func TestThePolicyOfSignatures(t *testing.T) {
	for name, c := range map[string]struct {
		api        string
		algorithm  string
		components []profile.SignatureComponent
		format     string
	}{
		"RSA":     {"SignAlg: RSA, HashAlg: SHA-256", "rsa-with-sha-256", []profile.SignatureComponent{{Algorithm: algorithm.RSAPKCS1v15, Hash: crypto.SHA256}}, ""},
		"PSS":     {"SigningMode: legacy, SignAlg: rsa-pss, HashAlg: sha3-512, SignatureFormat: raw", "rsa-pss-with-sha3-512", []profile.SignatureComponent{{Algorithm: algorithm.RSAPSS, Hash: crypto.SHA3_512}}, "RAW"},
		"ECDSA":   {"SignAlg: ecdsa, HashAlg: sha-384, SignatureFormat: CMS", "ecdsa-with-sha-384", []profile.SignatureComponent{{Algorithm: algorithm.ECDSA, Hash: crypto.SHA384}}, "CMS"},
		"Ed25519": {"SignAlg: ed25519, SignatureFormat: PEM", "ed25519", []profile.SignatureComponent{{Algorithm: algorithm.Ed25519}}, "PEM"},
		"ML-DSA":  {"SigningMode: post-quantum, SignAlg: ml-dsa-87", "ml-dsa-87", []profile.SignatureComponent{{Algorithm: algorithm.MLDSA87}}, ""},
		"hybrid": {"SigningMode: Hybrid, SignAlg: ECDSA+ML-DSA-65, HashAlg: sha-512, SignatureFormat: DER", "ecdsa-with-sha-512+ml-dsa-65",
			[]profile.SignatureComponent{{Algorithm: algorithm.ECDSA, Hash: crypto.SHA512}, {Algorithm: algorithm.MLDSA65}}, "DER"},
	} {
		t.Run(name, func(t *testing.T) {
			policy := compiled(t, "- Name: P\n  API: {SignData: {"+c.api+"}}\n").Signature()
			if diff := cmp.Diff(c.components, policy.Components()); diff != "" || policy.Algorithm() != c.algorithm {
				t.Errorf("%s (-want +got):\n%s", policy.Algorithm(), diff)
			}
			format, fixed := policy.Format()
			if fixed != (c.format != "") || fixed && format.String() != c.format {
				t.Errorf("format %s, %v, want %q", format, fixed, c.format)
			}
		})
	}
}

func TestLimitsThatAreGivenOnceCountForBothDirections(t *testing.T) {
	policy := compiled(t, "- Name: P\n  API: {SignData: {SignAlg: rsa, HashAlg: sha-256, KeyConstraints: {Subject: {RSA: {MinKeySize: 3072, MaxKeySize: 4096}}}}}\n").Signature()
	want := keyrules.Size{MinKeySize: 3072, MaxKeySize: 4096}
	for name, limits := range map[string]keyrules.Limits{"signs": policy.Signs(), "checks": policy.Checks()} {
		if got, ok := limits.Range("RSA"); !ok || got != want {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
		if _, ok := limits.Range("ECDSA"); ok {
			t.Errorf("%s: an algorithm that is not listed is allowed", name)
		}
	}
}

func TestTheKeysAnOperationMayUse(t *testing.T) {
	sum := strings.Repeat("0123456789abcdef", 4)
	p := compiled(t, "- Name: P\n  API: {SignData: {SignAlg: ed25519, KeyIds: [{Id: pinned, SPKISHA256: "+strings.ToUpper(sum)+"}, {Id: free}]}, HashData: {HashAlg: sha-256}}\n")
	keys := p.Signature().Keys()
	if !keys.ByReference() || !keys.Allows("pinned") || !keys.Allows("free") || keys.Allows("other") || keys.Allows("") {
		t.Error("the list is not what it says")
	}
	if pin, ok := keys.Pin("pinned"); !ok || hex.EncodeToString(pin[:]) != sum {
		t.Errorf("pin %x, %v", pin, ok)
	}
	if _, ok := keys.Pin("free"); ok {
		t.Error("a key without a pin has one")
	}
	var none *keyrules.Policy
	if _, pinned := none.Pin("any"); none.ByReference() || none.Allows("any") || pinned {
		t.Error("without a list a key of the broker is allowed")
	}
	every := compiled(t, "- Name: P\n  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 128, KeyIds: [{Id: \"*\"}]}}\n").Cipher().Keys()
	if _, pinned := every.Pin("any"); !every.ByReference() || !every.Allows("any") || pinned {
		t.Error("a list of every key does not allow one")
	}
	if every.Allows("hsm/any") {
		t.Error("a list of every key of the directory allows a key of a key manager")
	}
}

func TestTheLargestRSAKeyThatARequestMayBringIs(t *testing.T) {
	for sentence, c := range map[string]struct {
		api  string
		want int
	}{
		"4096 bits without KeyConstraints":                {"SignAlg: rsa, HashAlg: sha-256", 4096},
		"4096 bits where they list other keys":            {"SignAlg: ecdsa, HashAlg: sha-256, KeyConstraints: {Issuer: {ECDSA: {MinKeySize: 256, MaxKeySize: 384}}}", 4096},
		"the limit of KeyConstraints, if they allow more": {"SignAlg: rsa, HashAlg: sha-256, KeyConstraints: {Issuer: {RSA: {MinKeySize: 2048, MaxKeySize: 8192}}}", 8192},
		"the limit of KeyConstraints, if they allow less": {"SignAlg: rsa, HashAlg: sha-256, KeyConstraints: {Issuer: {RSA: {MinKeySize: 2048, MaxKeySize: 3072}}}", 3072},
	} {
		t.Run(sentence, func(t *testing.T) {
			policy := compiled(t, "- Name: P\n  API: {SignData: {"+c.api+"}}\n").Signature()
			if signs, checks := policy.Signs().LargestGivenRSA(), policy.Checks().LargestGivenRSA(); signs != c.want || checks != c.want {
				t.Errorf("%d to sign and %d to verify, want %d", signs, checks, c.want)
			}
		})
	}
	broker := compiled(t, "- Name: P\n  API: {SignData: {SignAlg: rsa, HashAlg: sha-256, KeyIds: [{Id: k}]}}\n").Signature()
	if size, _ := broker.Signs().Range("RSA"); size.MaxKeySize != algorithm.MaxRSASize {
		t.Errorf("a key of the broker may have %d bits, want %d", size.MaxKeySize, algorithm.MaxRSASize)
	}
}

func TestADeprecationIsKept(t *testing.T) {
	p := compiled(t, "- Name: P\n  API: {HashData: {HashAlg: sha-256}}\n  Deprecation: {ReplacedBy: Q, DeprecatedSince: \"2026-01-01\", RemoveAfter: \"2027-01-01\", Reason: Old.}\n")
	if diff := cmp.Diff(&profile.Deprecation{ReplacedBy: "Q", DeprecatedSince: "2026-01-01", RemoveAfter: "2027-01-01", Reason: "Old."}, p.Deprecation()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if compiled(t, "- Name: P\n  API: {HashData: {HashAlg: sha-256}}\n").Deprecation() != nil {
		t.Error("a profile that is not deprecated has a deprecation")
	}
}

func TestWhatNoCallCouldEverUseIsRefusedAtLoad(t *testing.T) {
	const cms = `API.SignData.SignatureFormat: found "CMS", which needs SignAlg "rsa" or "ecdsa" with a HashAlg "sha-256", "sha-384" or "sha-512"`
	for name, c := range map[string]struct{ api, want string }{
		"CMS of PSS":     {"SignData: {SignAlg: rsa-pss, HashAlg: sha-256, SignatureFormat: CMS}", cms},
		"CMS of SHA-3":   {"SignData: {SignAlg: ecdsa, HashAlg: sha3-256, SignatureFormat: cms}", cms},
		"CMS of ML-DSA":  {"SignData: {SigningMode: post-quantum, SignAlg: ml-dsa-44, SignatureFormat: CMS}", cms},
		"CMS of hybrids": {"SignData: {SigningMode: hybrid, SignAlg: rsa+ml-dsa-44, HashAlg: sha-256, SignatureFormat: CMS}", cms},
		"limits without the algorithm's keys": {
			"SignData: {SignAlg: ecdsa, HashAlg: sha-256, KeyConstraints: {Issuer: {RSA: {MinKeySize: 2048, MaxKeySize: 4096}}}}",
			`API.SignData.KeyConstraints.Issuer: does not list "ECDSA", the keys of SignAlg "ecdsa", so that every key would be refused`,
		},
		"limits without the keys of a hybrid": {
			"SignData: {SigningMode: hybrid, SignAlg: ed25519+ml-dsa-44, KeyConstraints: {Subject: {RSA: {MinKeySize: 2048, MaxKeySize: 4096}}}}",
			`API.SignData.KeyConstraints.Subject: does not list "Ed25519", the keys of SignAlg "ed25519+ml-dsa-44", so that every key would be refused`,
		},
		"the pin of an AES key": {
			"EncryptData: {EncryptAlg: aes-gcm, KeySize: 128, KeyIds: [{Id: k, SPKISHA256: " + strings.Repeat("00", 32) + "}]}",
			"API.EncryptData.KeyIds[0].SPKISHA256: an AES key has no public key that could be pinned, expected no SPKISHA256",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := profile.Compile(profile.FileName, []byte("- Name: P\n  API: {"+c.api+"}\n"))
			if len(problems) != 1 || problems[0].Field+": "+problems[0].Message != c.want {
				t.Errorf("%v\nwant %s", problems, c.want)
			}
		})
	}
}
