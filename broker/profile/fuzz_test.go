// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/internal/fuzzmemory"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/catalogue"
)

const (
	// perValue is more than a value of a file may have allocated, in bytes: one that
	// is not right takes up to 5 KiB, for the sentence that says what would be.
	perValue = 8 << 10
	// mostValues is how many a file may have where it uses aliases.
	mostValues = 1 << 18
)

// values is how many values a file may have. Aliases make many of few bytes.
func values(data []byte) int {
	if bytes.Contains(data, []byte("*")) {
		return mostValues
	}
	return len(data)
}

// FuzzCompile holds what is true of every file: its memory is in proportion to its
// values, reading never fails in any way
// but by naming problems, a place is in the file, a set without problems has all
// profiles, and what was read without a problem renders and reads back the same.
func FuzzCompile(f *testing.F) {
	mistakes, err := os.ReadFile(filepath.Join("testdata", "ten-mistakes.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(mistakes)
	f.Add(catalogue.Profiles)
	f.Add([]byte(manyUnderALongName(20)))
	f.Add([]byte(everySection))
	for _, seed := range []string{
		"", "[]", "{}", "Profiles: []", "- &a {Name: A, API: *a}", "- {<<: *a}", "- &a\n  <<: *a\n", "---\n---\n", "- ? [a]\n  : b\n", "&a [*a, *a]",
		"- Name: !!binary YQ==\n", "\xff\xfe-\x00", "- {Name: A, KMS: {Config: {a: .nan, b: 0o7, c: 0x1F, d: 1_000, e: 2025-01-01}}}", "%YAML 1.1\n---\n[]",
		"- Name: A\n  API: {SignCertificate: {KeyConstraints: {Subject: {RSA: {}}}}}\n", "- Name: |\n    A\n  API: >-\n    b\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var set *profile.Set
		var problems profile.Problems
		fuzzmemory.Check(t, values(data), perValue, func() { set, problems = profile.Compile(profile.FileName, data) })
		for _, p := range problems {
			if p.Line < 1 || p.Column < 1 || p.Message == "" {
				t.Errorf("problem without a place or a message: %+v", p)
			}
		}
		if set == nil && len(problems) == 0 {
			t.Error("no set and no reason")
		}
		var doc *profile.Document
		var unreadable profile.Problems
		fuzzmemory.Check(t, values(data), perValue, func() { doc, unreadable = profile.Parse(profile.FileName, data) })
		if len(unreadable) > len(problems) {
			t.Errorf("Parse found %d problems, Compile %d", len(unreadable), len(problems))
		}
		if len(unreadable) > 0 {
			return
		}
		if set != nil && len(problems) == 0 && set.Len()+len(set.Rollouts()) != len(doc.Profiles) { // of a rollout, one of two profiles is served
			t.Errorf("%d of %d profiles are served, and no problem says why", set.Len(), len(doc.Profiles))
		}
		assertRoundTrip(t, doc)
		assertJudgedAlike(t, doc, inAnyOrder, profile.RequireFIPS(), profile.Instance("broker"))
		if set != nil {
			assertNothingIsLostWithoutAChange(t, set)
		}
	})
}

// everySection has each section and each list of a profile file, so that the fuzzer finds them.
const everySection = `FormatVersion: 2
Profiles:
  - Name: A
    API:
      HashData: {HashAlg: shake-256}
      EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, ShortTagLength: 96, KeyIds: [{Id: "*"}]}
      SignData:
        SigningMode: hybrid
        SignAlg: ecdsa+ml-dsa-65
        HashAlg: sha3-384
        SignatureFormat: RAW
        KeyConstraints: {Subject: {ECDSA: {MinKeySize: 256, MaxKeySize: 521}}, Issuer: {ECDSA: {MinKeySize: 384, MaxKeySize: 384}}}
      SignCertificate:
        SignAlg: rsa-pss
        HashAlg: sha-256
        SKIHashAlg: sha-256
        Validity: {ValidNotBeforeOffset: -1h1ns, ValidNotAfterOffset: 8760h}
        KeyConstraints: {Subject: {RSA: {MinKeySize: 2048, MaxKeySize: 4096}}, Issuer: {RSA: {MinKeySize: 3072, MaxKeySize: 3072}}}
        KeyUsage: [keyCertSign]
        ExtendedKeyUsage: [serverAuth]
        BasicConstraints: {CA: true, PathLenConstraint: 0}
        SubjectAltNames: {Rule: patterns, Required: true, DNS: ["*.example.com"], IP: [10.0.0.0/8, "2001:db8::/32"], URI: ["spiffe://example.com/ns/*"], Email: ["*@example.com"]}
        CRLDistributionPoints: {Rule: patterns, URI: ["http://crl.example.com/*"]}
        AllowSHA1Requests: true
        KeyIds: [{Id: ca, SPKISHA256: ` + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" + `}]
      DataKeys: {WrapAlgs: [aes-gcm, rsa-oaep-sha-256, hpke-p-256], KeySize: 192, Context: required, KeyIds: [{Id: vault/k}]}
      Session:
        Protocols: [session-v2, session-hpke-p256]
        KeyAgreementAlg: ECDH_P256
        EncryptAlg: A256GCM
        SignAlg: ecdsa
        HashAlg: sha-256
        KeyIds: [{Id: share}]
        MinLifetime: 1m
        MaxLifetime: 10m
        ClockWindow: 30s
        MaxMessages: 100
        Store: memory
    Callers: {Containers: [app], UIDs: [0, 1000], GIDs: [2000]}
    Audit: {Level: all, Required: true}
    Deprecation: {ReplacedBy: B, DeprecatedSince: "2026", RemoveAfter: "2027", Reason: old}
  - {Name: B, API: {HashData: {HashAlg: sha-256}}}
  - {Name: B, API: {HashData: {HashAlg: sha-384}}, Rollout: {Below: 4711, Digest: d}}
`

func TestTheFileWithEverySectionIsValid(t *testing.T) {
	set, problems := profile.Compile(profile.FileName, []byte(everySection))
	if len(problems) > 0 || set.Len() != 2 {
		t.Error(problems)
	}
}

// assertNothingIsLostWithoutAChange checks that each profile offers what it offers, and that its
// strength is the strength of its weakest operation.
func assertNothingIsLostWithoutAChange(t *testing.T, set *profile.Set) {
	t.Helper()
	for _, name := range set.Names() {
		p, _ := set.Lookup(name)
		if lost := p.Lost(p); len(lost) > 0 {
			t.Errorf("the profile %q loses %q against itself", name, lost)
		}
		for _, a := range p.Assessments() {
			if a.Strength.Bits < p.Strength().Bits || a.Strength.Limit == "" || a.Algorithm == "" {
				t.Errorf("the profile %q has the assessment %+v and the strength %+v", name, a, p.Strength())
			}
		}
	}
}

// manyUnderALongName has a free-form list of n times n values below a name of 20
// kB, so that n lists are written and the others are aliases.
func manyUnderALongName(n int) string {
	name, value := strings.Repeat("k", 20_000), strings.Repeat("1, ", n)
	return "- Name: A\n  KMS:\n    Config:\n      ? " + name + "\n      : [&a [" + value + "]" + strings.Repeat(", *a", n-1) + "]\n"
}

func TestALongNameIsNotInThePathOfEveryValueBelowIt(t *testing.T) {
	data := []byte(manyUnderALongName(300))
	fuzzmemory.Check(t, 300*300, 1<<10, func() {
		if _, problems := profile.Parse(profile.FileName, data); len(problems) > 0 {
			t.Error(problems)
		}
	})
}

func TestThePathOfAProblemIsCutWhere(t *testing.T) {
	deep := strings.Repeat("{"+strings.Repeat("b", 30)+": ", 20) + "!!x 1" + strings.Repeat("}", 20)
	for sentence, c := range map[string]struct{ config, field string }{
		"a name is long":              {"{" + strings.Repeat("k", 65) + ": !!x 1}", "KMS.Config." + strings.Repeat("k", 64) + "…"},
		"a character would be cut":    {"{" + strings.Repeat("k", 63) + "ü: !!x 1}", "KMS.Config." + strings.Repeat("k", 63) + "…"},
		"a value is deep":             {deep, "KMS.Config" + strings.Repeat("."+strings.Repeat("b", 30), 8)},
		"nothing is, where all fits":  {"{" + strings.Repeat("k", 64) + ": [!!x 1]}", "KMS.Config." + strings.Repeat("k", 64) + "[0]"},
		"a list is in what is deeper": {strings.Replace(deep, "!!x 1", "[!!x 1]", 1), "KMS.Config" + strings.Repeat("."+strings.Repeat("b", 30), 8)},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, problems := profile.Parse(profile.FileName, []byte("- {Name: A, KMS: {Config: "+c.config+"}}\n"))
			if len(problems) != 1 || problems[0].Field != c.field {
				t.Errorf("%v, want one problem of %s", problems, c.field)
			}
		})
	}
}
