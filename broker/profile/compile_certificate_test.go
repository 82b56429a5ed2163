// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/extensions"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

// certificatePolicy compiles the policy of a profile whose SignCertificate has these lines in addition to the required lines.
func certificatePolicy(t *testing.T, lines ...string) *profile.CertificatePolicy {
	t.Helper()
	text := "- Name: P\n  API:\n    SignCertificate:\n"
	for _, line := range lines {
		text += "      " + line + "\n"
	}
	for field, line := range map[string]string{
		"SignAlg:":        "SignAlg: ecdsa\n      HashAlg: sha-256",
		"Validity:":       "Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 1h}",
		"KeyConstraints:": "KeyConstraints: {Subject: {ECDSA: {MinKeySize: 256, MaxKeySize: 384}}}",
	} {
		if !strings.Contains(text, field) {
			text += "      " + line + "\n"
		}
	}
	set, problems := profile.Compile(profile.FileName, []byte(text))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	p, _ := set.Lookup("P")
	return p.Certificate()
}

func TestTheSignatureAlgorithmOfCertificatesIs(t *testing.T) {
	for lines, want := range map[string]struct {
		algorithm x509.SignatureAlgorithm
		name      string
	}{
		"rsa sha-256":     {x509.SHA256WithRSA, "sha256WithRSAEncryption"},
		"RSA SHA-384":     {x509.SHA384WithRSA, "sha384WithRSAEncryption"},
		"rsa sha-512":     {x509.SHA512WithRSA, "sha512WithRSAEncryption"},
		"rsa-pss sha-256": {x509.SHA256WithRSAPSS, "id-RSASSA-PSS"},
		"rsa-pss sha-384": {x509.SHA384WithRSAPSS, "id-RSASSA-PSS"},
		"rsa-pss sha-512": {x509.SHA512WithRSAPSS, "id-RSASSA-PSS"},
		"ecdsa sha-256":   {x509.ECDSAWithSHA256, "ecdsa-with-SHA256"},
		"ECDSA sha-384":   {x509.ECDSAWithSHA384, "ecdsa-with-SHA384"},
		"ecdsa sha-512":   {x509.ECDSAWithSHA512, "ecdsa-with-SHA512"},
		"ed25519":         {x509.PureEd25519, "id-Ed25519"},
	} {
		t.Run(lines, func(t *testing.T) {
			sign, hash, separate := strings.Cut(lines, " ")
			if separate {
				sign += "\n      HashAlg: " + hash
			}
			p := certificatePolicy(t, "SignAlg: "+sign)
			if p.SignatureAlgorithm() != want.algorithm || p.SignatureAlgorithmName() != want.name {
				t.Errorf("got %v, %s", p.SignatureAlgorithm(), p.SignatureAlgorithmName())
			}
		})
	}
}

func TestACertificatePolicyHasWhatTheProfileSays(t *testing.T) {
	p := certificatePolicy(t,
		"SKIHashAlg: SHA3-384",
		"KeyUsage: [digitalSignature, contentCommitment, nonRepudiation, keyEncipherment, dataEncipherment, keyAgreement, keyCertSign, cRLSign, encipherOnly, decipherOnly]",
		"ExtendedKeyUsage: [serverAuth, clientAuth, codeSigning, emailProtection, timeStamping, OCSPSigning]",
		"BasicConstraints: {CA: true, PathLenConstraint: 0}",
		"SubjectAltNames: {Rule: copy, Required: true}",
		"CRLDistributionPoints: {Rule: patterns, URI: ['http://*.example.com/crl/*']}",
		"AllowSHA1Requests: true",
		"KeyIds: [{Id: b}, {Id: a}]",
	)
	if !p.Names().Required() || !p.AllowsSHA1Requests() {
		t.Errorf("names required: %t, requests with SHA-1: %t", p.Names().Required(), p.AllowsSHA1Requests())
	}
	points := p.DistributionPoints()
	if points.Rule() != extensions.PointsMatched || !points.MatchesURI("http://a.example.com/crl/1") || points.MatchesURI("http://a.example.com/1") || points.MatchesURI("https://a.example.com/crl/1") {
		t.Error("distribution points do not follow the pattern")
	}
	if p.KeyIdentifierHash() != crypto.SHA3_384 {
		t.Errorf("key identifier by %v", p.KeyIdentifierHash())
	}
	if p.KeyUsage() != 1<<9-1 {
		t.Errorf("key usage %b, want all nine bits", p.KeyUsage())
	}
	want := []x509.ExtKeyUsage{
		x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageCodeSigning,
		x509.ExtKeyUsageEmailProtection, x509.ExtKeyUsageTimeStamping, x509.ExtKeyUsageOCSPSigning,
	}
	if !slices.Equal(p.ExtendedKeyUsage(), want) {
		t.Errorf("extended key usage %v, want %v", p.ExtendedKeyUsage(), want)
	}
	if ca, pathLen := p.CA(); !ca || pathLen != 0 {
		t.Errorf("CA %v with path length %d, want true with 0", ca, pathLen)
	}
	if !slices.Equal(p.KeyIDs(), []string{"b", "a"}) || !p.Keys().Allows("a") || p.Keys().Allows("c") {
		t.Errorf("key ids %q", p.KeyIDs())
	}
	if size, ok := p.SubjectKeys().Range("ECDSA"); !ok || size != (keyrules.Size{MinKeySize: 256, MaxKeySize: 384}) {
		t.Errorf("subject's ECDSA keys: %v, %v", size, ok)
	}
	if size, ok := p.IssuerKeys().Range("RSA"); ok {
		t.Errorf("RSA is not listed for issuers, which have no list at all, but may have %v", size)
	}
}

func TestACertificatePolicyDefaultsToWhatReleasedBrokersDo(t *testing.T) {
	p := certificatePolicy(t)
	if p.KeyIdentifierHash() != crypto.SHA1 {
		t.Errorf("key identifier by %v, want SHA-1", p.KeyIdentifierHash())
	}
	if ca, pathLen := p.CA(); ca || pathLen != -1 {
		t.Errorf("CA %v with path length %d, want false with none", ca, pathLen)
	}
	if p.Names().Rule() != extensions.NamesDenied {
		t.Errorf("names by rule %d, want them denied", p.Names().Rule())
	}
	if p.Names().Required() || p.DistributionPoints().Rule() != extensions.PointsAny {
		t.Errorf("names required: %t, distribution points by rule %d", p.Names().Required(), p.DistributionPoints().Rule())
	}
	if p.Keys().ByReference() || len(p.KeyIDs()) > 0 {
		t.Error("keys are restricted")
	}
}

func TestTheWindowOfAProfileIsNeverWiderThanItSays(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 987654321, time.UTC)
	for offsets, want := range map[[2]string][2]string{
		{"-1h", "8760h"}:      {"2026-01-02T02:04:05Z", "2027-01-02T03:04:05Z"},
		{"0s", "1s"}:          {"2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"},
		{"-1500ms", "2500ms"}: {"2026-01-02T03:04:04Z", "2026-01-02T03:04:07Z"},
		{"1200ms", "10s"}:     {"2026-01-02T03:04:07Z", "2026-01-02T03:04:15Z"},
	} {
		t.Run(fmt.Sprint(offsets), func(t *testing.T) {
			p := certificatePolicy(t, fmt.Sprintf("Validity: {ValidNotBeforeOffset: %s, ValidNotAfterOffset: %s}", offsets[0], offsets[1]))
			earliest, latest := p.Window(now)
			got := [2]string{earliest.Format(time.RFC3339Nano), latest.Format(time.RFC3339Nano)}
			if got != want {
				t.Errorf("window %s, want %s", got, want)
			}
		})
	}
}

func TestPatternsOfAlternativeNames(t *testing.T) {
	p := certificatePolicy(t, `SubjectAltNames:
        Rule: patterns
        DNS: ["*.shop.example.com", "API.example.com"]
        IP: [10.0.0.0/8, 192.0.2.1, "2001:db8::/32"]
        Email: ["*@example.com", "ops@*.example.org"]
        URI:
          - spiffe://example.com/ns/shop/*
          - spiffe://example.com/ns/*/sa/web
          - https://*.example.com:8443/a*
          - https://example.com/exact?query=1
          - urn:example:*`).Names()
	if p.Rule() != extensions.NamesMatched {
		t.Fatalf("rule %d", p.Rule())
	}
	wide := certificatePolicy(t, `SubjectAltNames: {Rule: patterns, IP: ["::/0"]}`).Names()
	for kind, c := range map[string]struct {
		allows func(string) bool
		yes    []string
		no     []string
	}{
		"DNS": {p.AllowsDNS,
			[]string{"a.shop.example.com", "A.SHOP.example.COM", "*.shop.example.com", "api.example.com"},
			[]string{"shop.example.com", ".shop.example.com", "a.b.shop.example.com", "*.a.shop.example.com", "a*.shop.example.com", "a.shop.example.com.", "a_b.shop.example.com", "a.shop.example.comx", "b.api.example.com", "*.example.com", "", "a.shop.example.com\x00.evil"},
		},
		"IP": {func(s string) bool { return p.AllowsIP(netip.MustParseAddr(s)) },
			[]string{"10.1.2.3", "192.0.2.1", "2001:db8::1"},
			[]string{"11.0.0.1", "192.0.2.2", "2001:db9::1", "::ffff:10.1.2.3", "::ffff:192.0.2.1"},
		},
		"IP of every network of IPv6": {func(s string) bool { return wide.AllowsIP(netip.MustParseAddr(s)) },
			[]string{"2001:db8::1", "::1"},
			[]string{"10.1.2.3", "::ffff:10.1.2.3"},
		},
		"Email": {p.AllowsEmail,
			[]string{"a@example.com", "A.b+c@EXAMPLE.com", "ops@team.example.org"},
			[]string{"@example.com", "example.com", "a@b@example.com", "a@sub.example.com", "Ops@team.example.org", "dev@team.example.org", "ops@example.org", "ops@a.b.example.org"},
		},
		"URI": {p.AllowsURI,
			[]string{"spiffe://example.com/ns/shop/sa/web", "spiffe://example.com/ns/shop/a/b/c", "SPIFFE://EXAMPLE.com/ns/other/sa/web", "https://x.example.com:8443/ab", "https://x.example.com:8443/abc/d", "https://example.com/exact?query=1", "urn:example:a:b"},
			[]string{
				"https://%E2%84%AA.example.com:8443/ab", "https://%C4%B0.example.com:8443/ab",
				"spiffe://example.com/ns/shop/", "spiffe://example.com/ns/shop", "spiffe://example.com/ns//sa/web", "spiffe://example.com/ns/a/b/sa/web",
				"spiffe://example.com/ns/shop/../bank/sa/web", "spiffe://example.com/ns/shop/%2e%2e/x", "spiffe://example.com/ns/shop/a%2fb", "spiffe://example.com/ns/shop/x?q", "spiffe://example.com/ns/shop/x#f", "spiffe://example.com/ns/shop/x?", "spiffe://example.com/ns/shop/x#",
				"spiffe://user@example.com/ns/shop/x", "spiffe://example.com:1/ns/shop/x", "https://evil.com/x.example.com:8443/a", "https://a.b.example.com:8443/a", "https://x.example.com/a", "https://x.example.com:8443/", "https://x.example.com:8443/b", "https://x.example.com:8443/a",
				"https://example.com/exact", "https://example.com/exact?query=2", "urn:example:", "urn:other:a", "spiffe://example.com/ns/shop/*", "spiffe://example.com/ns/shop/a b", "not a uri", "",
			},
		},
	} {
		for _, name := range c.yes {
			if !c.allows(name) {
				t.Errorf("%s %q is refused", kind, name)
			}
		}
		for _, name := range c.no {
			if c.allows(name) {
				t.Errorf("%s %q is allowed", kind, name)
			}
		}
	}
}

func TestAPatternThatWouldBeReadOneWayAndActAnotherIsAProblem(t *testing.T) {
	for _, lines := range []string{
		"URI: [https://example.com*]", "URI: ['https://a*.example.com/']", "URI: ['https://*/a']", "URI: ['https://example.com:*/']",
		"URI: ['https://example.com/a*/b']", "URI: ['https://example.com/**']", "URI: ['https://example.com/?q=*']", "URI: ['*://example.com/']",
		"URI: [https://example.com/a/../b]", "Email: ['o*s@example.com']", "Email: ['ops@*']", "DNS: ['*']", "DNS: ['a.*.example.com']", "IP: [10.0.0.1/8]",
	} {
		text := "- Name: P\n  API:\n    SignCertificate:\n      SignAlg: ed25519\n      Validity: {ValidNotBeforeOffset: 0s, ValidNotAfterOffset: 1h}\n      SubjectAltNames:\n        Rule: patterns\n        " + lines + "\n"
		_, problems := profile.Compile(profile.FileName, []byte(text))
		if len(problems) != 1 || !strings.Contains(problems[0].Message, "expected a") {
			t.Errorf("%s: problems %v, want one that says what is expected", lines, problems)
		}
	}
}
