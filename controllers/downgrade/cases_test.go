// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/callers"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/extensions"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

// complete is a profile that offers all operations, with all possible restrictions.
const complete = `
Name: Orders
Settings: {CryptoLibrary: native}
KMS:
  Client: vault
  Config: {address: "https://vault.example:8200"}
  Cache: {seconds: 60}
API:
  HashData: {HashAlg: sha-384}
  SignCertificate:
    SignAlg: ecdsa
    HashAlg: sha-384
    SKIHashAlg: sha-256
    Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 8760h}
    KeyConstraints:
      Subject:
        RSA: {MinKeySize: 3072, MaxKeySize: 4096}
        ECDSA: {MinKeySize: 384, MaxKeySize: 384}
      Issuer:
        ECDSA: {MinKeySize: 384, MaxKeySize: 384}
    KeyUsage: [digitalSignature, contentCommitment]
    ExtendedKeyUsage: [clientAuth]
    BasicConstraints: {CA: true, PathLenConstraint: 1}
    SubjectAltNames:
      Rule: patterns
      Required: true
      DNS: ["*.shop.example", www.example]
      IP: [10.0.0.0/16]
      URI: ["spiffe://shop.example/ns/*"]
      Email: ["*@shop.example"]
    CRLDistributionPoints: {Rule: patterns, URI: ["http://crl.shop.example/*"]}
    KeyIds: [{Id: ca-1, SPKISHA256: "0000000000000000000000000000000000000000000000000000000000000001"}]
  EncryptData: {EncryptAlg: aes-gcm, KeySize: 192, NonceStrategy: random, TagLength: 120, ShortTagLength: 120, KeyIds: [{Id: k1}]}
  SignData:
    SigningMode: hybrid
    SignAlg: ecdsa+ml-dsa-65
    HashAlg: sha-384
    SignatureFormat: DER
    KeyConstraints:
      Subject: {ECDSA: {MinKeySize: 384, MaxKeySize: 384}}
      Issuer: {ECDSA: {MinKeySize: 384, MaxKeySize: 384}}
    KeyIds: [{Id: s1, SPKISHA256: "0000000000000000000000000000000000000000000000000000000000000002"}, {Id: s2}]
  DataKeys: {WrapAlgs: [rsa-oaep-sha-384], KeySize: 192, Context: required, KeyIds: [{Id: w1, SPKISHA256: "0000000000000000000000000000000000000000000000000000000000000003"}]}
  Session: {Protocols: [session-v1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM, MinLifetime: 10m, MaxLifetime: 30m, ClockWindow: 60s, MaxMessages: 1000}
Callers: {Containers: [web], UIDs: [1000], GIDs: [2000]}
Audit: {Level: sensitive, Required: true}
Deprecation: {ReplacedBy: Orders2, DeprecatedSince: "2026-01-01", RemoveAfter: "2027-01-01", Reason: old}
`

// native changes a section of sessions to the native protocols, which have a signature.
func native(s *profile.Session, protocols ...string) {
	s.Protocols, s.SignAlg, s.HashAlg, s.KeyIDs = protocols, "ecdsa", "sha-384", []keyrules.ID{{ID: "n1"}}
	if protocols[0] != "session-v1" {
		s.KeyAgreementAlg = ""
	}
}

func parse(t testing.TB, text string) profile.Profile {
	t.Helper()
	var p profile.Profile
	if err := yaml.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// comparing is one comparison. base makes the old profile from the complete profile, if it is set. change makes the new profile
// from the old one. Without change, the new profile is the complete profile.
type comparing struct {
	base, change func(*profile.Profile)
	weaker       map[string]string // the weaker fields with their messages; nil if there are none
}

// profiles returns the old and the new one.
func (c comparing) profiles(t *testing.T) (before, after profile.Profile) {
	t.Helper()
	before, after = parse(t, complete), parse(t, complete)
	if c.base != nil {
		c.base(&before)
		if c.change != nil {
			c.base(&after)
		}
	}
	if c.change != nil {
		c.change(&after)
	}
	return before, after
}

// cases have descriptions of the changes as keys.
var cases = map[string]comparing{
	"nothing": {change: func(*profile.Profile) {}},

	"a stronger digest":                {change: func(p *profile.Profile) { p.API.HashData.HashAlg = "sha-512" }},
	"another digest as strong":         {change: func(p *profile.Profile) { p.API.HashData.HashAlg = "SHA3-384" }},
	"the same digest in other letters": {change: func(p *profile.Profile) { p.API.HashData.HashAlg = "SHA-384" }},
	"a weaker digest": {
		change: func(p *profile.Profile) { p.API.HashData.HashAlg = "sha-256" },
		weaker: map[string]string{"API.HashData.HashAlg": `"sha-256" has a strength of 128 bits, "sha-384" had 192 bits`},
	},
	"operations that go": {change: func(p *profile.Profile) { p.API = profile.API{HashData: p.API.HashData} }},
	"operations that come": {
		base: func(p *profile.Profile) { p.API = profile.API{HashData: p.API.HashData} },
		weaker: map[string]string{
			"API.SignCertificate": "SignCertificate is offered, which the profile refused",
			"API.EncryptData":     "EncryptData and DecryptData are offered, which the profile refused",
			"API.SignData":        "SignData and VerifyData are offered, which the profile refused",
			"API.DataKeys":        "GenerateDataKey, WrapKey, UnwrapKey, RewrapKey, GetPublicKey, EncryptStream and DecryptStream are offered, which the profile refused",
			"API.Session":         "InitSession, OpenRequest, SealReply, CloseSession and RekeySession are offered, which the profile refused",
		},
	},
	"digests that come": {
		base:   func(p *profile.Profile) { p.API.HashData = nil },
		weaker: map[string]string{"API.HashData": "HashData is offered, which the profile refused"},
	},

	"a weaker digest of certificates": {
		change: func(p *profile.Profile) { p.API.SignCertificate.HashAlg = "sha-256" },
		weaker: map[string]string{"API.SignCertificate.HashAlg": `"sha-256" has a strength of 128 bits, "sha-384" had 192 bits`},
	},
	"certificates by RSA as strong as ECDSA": {change: func(p *profile.Profile) {
		p.API.SignCertificate.SignAlg = "rsa-pss"
		p.API.SignCertificate.KeyConstraints.Issuer = map[string]keyrules.Size{"RSA": {MinKeySize: 7680, MaxKeySize: 8192}}
	}},
	"certificates by weaker RSA": {
		change: func(p *profile.Profile) {
			p.API.SignCertificate.SignAlg = "rsa"
			p.API.SignCertificate.KeyConstraints.Issuer = map[string]keyrules.Size{"RSA": {MinKeySize: 3072, MaxKeySize: 8192}}
		},
		weaker: map[string]string{"API.SignCertificate.SignAlg": `"rsa" has a strength of 128 bits by RSA keys of 3072 bits, "ecdsa" had 192 bits by ECDSA keys of 384 bits`},
	},
	"key identifiers by SHA-1": {
		change: func(p *profile.Profile) { p.API.SignCertificate.SKIHashAlg = "" },
		weaker: map[string]string{
			"API.SignCertificate.SKIHashAlg": `key identifiers are made with SHA-1, they were made with "sha-256"`,
			"API.SignCertificate":            "SignCertificate is no longer approved by FIPS 140-3: SKIHashAlg is SHA-1, which FIPS 140-3 does not approve; choose another one",
		},
	},
	"key identifiers by another digest, which all are cut to 160 bits": {change: func(p *profile.Profile) { p.API.SignCertificate.SKIHashAlg = "sha3-256" }},
	"a narrower window": {change: func(p *profile.Profile) {
		p.API.SignCertificate.Validity = profile.Validity{ValidNotBeforeOffset: "-30m", ValidNotAfterOffset: "24h"}
	}},
	"the same window, written otherwise": {change: func(p *profile.Profile) {
		p.API.SignCertificate.Validity = profile.Validity{ValidNotBeforeOffset: "-60m", ValidNotAfterOffset: "525600m"}
	}},
	"a longer window in both directions": {
		change: func(p *profile.Profile) {
			p.API.SignCertificate.Validity = profile.Validity{ValidNotBeforeOffset: "-2h", ValidNotAfterOffset: "8761h"}
		},
		weaker: map[string]string{
			"API.SignCertificate.Validity.ValidNotBeforeOffset": "certificates may begin at -2h from now, -1h was the earliest",
			"API.SignCertificate.Validity.ValidNotAfterOffset":  "certificates may end at 8761h from now, 8760h was the latest",
		},
	},
	"a range of keys that is broader at both ends": {
		change: func(p *profile.Profile) { subject(p)["RSA"] = keyrules.Size{MinKeySize: 2048, MaxKeySize: 8192} },
		weaker: map[string]string{
			"API.SignCertificate.KeyConstraints.Subject.RSA.MinKeySize": "RSA keys of 2048 bits may be used, 3072 was the least",
			"API.SignCertificate.KeyConstraints.Subject.RSA.MaxKeySize": "the range of RSA keys is broader: it ends at 8192 bits, it ended at 4096",
		},
	},
	"a range of keys that moves up": {change: func(p *profile.Profile) { subject(p)["RSA"] = keyrules.Size{MinKeySize: 4096, MaxKeySize: 8192} }},
	"a range of keys that moves down": {
		change: func(p *profile.Profile) { subject(p)["RSA"] = keyrules.Size{MinKeySize: 2048, MaxKeySize: 3072} },
		weaker: map[string]string{"API.SignCertificate.KeyConstraints.Subject.RSA.MinKeySize": "RSA keys of 2048 bits may be used, 3072 was the least"},
	},
	"the end of a range that begins where it did": {
		change: func(p *profile.Profile) { subject(p)["RSA"] = keyrules.Size{MinKeySize: 3072, MaxKeySize: 8192} },
		weaker: map[string]string{"API.SignCertificate.KeyConstraints.Subject.RSA.MaxKeySize": "the range of RSA keys is broader: it ends at 8192 bits, it ended at 4096"},
	},
	"a kind of keys that goes": {change: func(p *profile.Profile) { delete(subject(p), "RSA") }},
	"a kind of keys in the place of one as strong": {change: func(p *profile.Profile) {
		delete(subject(p), "RSA")
		subject(p)["Ed25519"] = keyrules.Size{MinKeySize: 256, MaxKeySize: 256}
	}},
	"a kind of keys in the place of a stronger one": {
		change: func(p *profile.Profile) {
			delete(subject(p), "ECDSA")
			subject(p)["Ed25519"] = keyrules.Size{MinKeySize: 256, MaxKeySize: 256}
		},
		weaker: map[string]string{"API.SignCertificate.KeyConstraints.Subject.Ed25519": "Ed25519 keys may be used, which the profile refused"},
	},
	"one kind of keys more": {
		change: func(p *profile.Profile) { subject(p)["Ed25519"] = keyrules.Size{MinKeySize: 256, MaxKeySize: 256} },
		weaker: map[string]string{"API.SignCertificate.KeyConstraints.Subject.Ed25519": "Ed25519 keys may be used, which the profile refused"},
	},
	"a broader range of the issuer's keys": {
		change: func(p *profile.Profile) {
			p.API.SignCertificate.KeyConstraints.Issuer["ECDSA"] = keyrules.Size{MinKeySize: 256, MaxKeySize: 521}
		},
		weaker: map[string]string{
			"API.SignCertificate.KeyConstraints.Issuer.ECDSA.MinKeySize": "ECDSA keys of 256 bits may be used, 384 was the least",
			"API.SignCertificate.KeyConstraints.Issuer.ECDSA.MaxKeySize": "the range of ECDSA keys is broader: it ends at 521 bits, it ended at 384",
		},
	},
	"issuer's keys that the algorithm does not take": {change: func(p *profile.Profile) {
		p.API.SignCertificate.KeyConstraints.Issuer["RSA"] = keyrules.Size{MinKeySize: 2048, MaxKeySize: 2048}
	}},
	"fewer usages":                     {change: func(p *profile.Profile) { p.API.SignCertificate.KeyUsage = []string{"digitalSignature"} }},
	"the older name of the same usage": {change: func(p *profile.Profile) { p.API.SignCertificate.KeyUsage = []string{"nonRepudiation"} }},
	"usages where every one was possible": {
		base: func(p *profile.Profile) {
			p.API.SignCertificate.KeyUsage, p.API.SignCertificate.ExtendedKeyUsage = nil, nil
		},
		change: func(p *profile.Profile) { p.API.SignCertificate.KeyUsage = []string{"keyCertSign"} },
	},
	"further usages": {
		change: func(p *profile.Profile) {
			p.API.SignCertificate.KeyUsage = []string{"digitalSignature", "keyCertSign", "cRLSign"}
			p.API.SignCertificate.ExtendedKeyUsage = []string{"serverAuth"}
		},
		weaker: map[string]string{
			"API.SignCertificate.KeyUsage":         "certificates are also for cRLSign, keyCertSign",
			"API.SignCertificate.ExtendedKeyUsage": "certificates are also for serverAuth",
		},
	},
	"no usages, which means all": {
		change: func(p *profile.Profile) {
			p.API.SignCertificate.KeyUsage, p.API.SignCertificate.ExtendedKeyUsage = nil, nil
		},
		weaker: map[string]string{
			"API.SignCertificate.KeyUsage":         "certificates have no KeyUsage and may be used for anything, they were for digitalSignature, contentCommitment",
			"API.SignCertificate.ExtendedKeyUsage": "certificates have no ExtendedKeyUsage and may be used for anything, they were for clientAuth",
		},
	},
	"no authorities":    {change: func(p *profile.Profile) { p.API.SignCertificate.BasicConstraints = nil }},
	"fewer authorities": {change: func(p *profile.Profile) { p.API.SignCertificate.BasicConstraints.PathLenConstraint = new(0) }},
	"further authorities": {
		change: func(p *profile.Profile) { p.API.SignCertificate.BasicConstraints.PathLenConstraint = new(2) },
		weaker: map[string]string{"API.SignCertificate.BasicConstraints.PathLenConstraint": "2 authorities may follow, 1 could"},
	},
	"any number of authorities": {
		change: func(p *profile.Profile) { p.API.SignCertificate.BasicConstraints.PathLenConstraint = nil },
		weaker: map[string]string{"API.SignCertificate.BasicConstraints.PathLenConstraint": "any number of authorities may follow, 1 could"},
	},
	"authorities where there were none": {
		base: func(p *profile.Profile) { p.API.SignCertificate.BasicConstraints = nil },
		change: func(p *profile.Profile) {
			p.API.SignCertificate.BasicConstraints = &profile.BasicConstraints{CA: true, PathLenConstraint: new(0)}
		},
		weaker: map[string]string{"API.SignCertificate.BasicConstraints.CA": "certificates are for certificate authorities, which may sign further ones"},
	},
	"alternative names denied, and with them what patterns say of the subject": {
		change: func(p *profile.Profile) { p.API.SignCertificate.SubjectAltNames = nil },
		weaker: map[string]string{
			"API.SignCertificate.SubjectAltNames.Required": "a request without alternative names is certified, it was refused",
			"API.SignCertificate.SubjectAltNames.Rule":     "the subject may have any common name and mail address, they had to match a pattern",
		},
	},
	"alternative names denied that were copied": {
		base: func(p *profile.Profile) {
			p.API.SignCertificate.SubjectAltNames = &extensions.SubjectAltNames{Rule: "copy"}
		},
		change: func(p *profile.Profile) { p.API.SignCertificate.SubjectAltNames = nil },
	},
	"alternative names required": {
		base:   func(p *profile.Profile) { p.API.SignCertificate.SubjectAltNames.Required = false },
		change: func(p *profile.Profile) { p.API.SignCertificate.SubjectAltNames.Required = true },
	},
	"alternative names no longer required": {
		change: func(p *profile.Profile) { p.API.SignCertificate.SubjectAltNames.Required = false },
		weaker: map[string]string{"API.SignCertificate.SubjectAltNames.Required": "a request without alternative names is certified, it was refused"},
	},
	"CRL distribution points denied": {change: func(p *profile.Profile) {
		p.API.SignCertificate.CRLDistributionPoints = &extensions.CRLDistributionPoints{Rule: "deny"}
	}},
	"CRL distribution points by patterns where any was allowed": {
		base: func(p *profile.Profile) { p.API.SignCertificate.CRLDistributionPoints = nil },
		change: func(p *profile.Profile) {
			p.API.SignCertificate.CRLDistributionPoints = &extensions.CRLDistributionPoints{Rule: "patterns", URI: []string{"http://a.example/*"}}
		},
	},
	"any CRL distribution points": {
		change: func(p *profile.Profile) { p.API.SignCertificate.CRLDistributionPoints = nil },
		weaker: map[string]string{"API.SignCertificate.CRLDistributionPoints.Rule": `the rule for CRL distribution points is "any", it was "patterns"`},
	},
	"CRL distribution points by patterns where they were denied": {
		base: func(p *profile.Profile) {
			p.API.SignCertificate.CRLDistributionPoints = &extensions.CRLDistributionPoints{Rule: "Deny"}
		},
		change: func(p *profile.Profile) {
			p.API.SignCertificate.CRLDistributionPoints = &extensions.CRLDistributionPoints{Rule: "patterns", URI: []string{"http://a.example/*"}}
		},
		weaker: map[string]string{"API.SignCertificate.CRLDistributionPoints.Rule": `the rule for CRL distribution points is "patterns", it was "deny"`},
	},
	"patterns of CRL distribution points that the old ones cover": {change: func(p *profile.Profile) {
		p.API.SignCertificate.CRLDistributionPoints.URI = []string{"http://crl.shop.example/ca.crl"}
	}},
	"patterns of CRL distribution points that the old ones do not cover": {
		change: func(p *profile.Profile) {
			p.API.SignCertificate.CRLDistributionPoints.URI = []string{"http://crl.shop.example/*", "http://*.example/*"}
		},
		weaker: map[string]string{"API.SignCertificate.CRLDistributionPoints.URI": `CRL distribution points may also match "http://*.example/*"`},
	},
	"requests with SHA-1": {
		change: func(p *profile.Profile) { p.API.SignCertificate.AllowSHA1Requests = true },
		weaker: map[string]string{
			"API.SignCertificate.AllowSHA1Requests": "certificate requests may be signed with SHA-1; the profile refused them",
			"API.SignCertificate":                   "SignCertificate is no longer approved by FIPS 140-3: AllowSHA1Requests allows requests that are signed with SHA-1, which FIPS 140-3 does not approve",
		},
	},
	"requests with SHA-1 no longer": {
		base:   func(p *profile.Profile) { p.API.SignCertificate.AllowSHA1Requests = true },
		change: func(p *profile.Profile) { p.API.SignCertificate.AllowSHA1Requests = false },
	},
	"alternative names by patterns where they were copied": {
		base: func(p *profile.Profile) {
			p.API.SignCertificate.SubjectAltNames = &extensions.SubjectAltNames{Rule: "copy"}
		},
		change: func(p *profile.Profile) {
			p.API.SignCertificate.SubjectAltNames = &extensions.SubjectAltNames{Rule: "patterns", DNS: []string{"a.example"}}
		},
	},
	"alternative names copied": {
		change: func(p *profile.Profile) {
			p.API.SignCertificate.SubjectAltNames = &extensions.SubjectAltNames{Rule: "copy", Required: true}
		},
		weaker: map[string]string{"API.SignCertificate.SubjectAltNames.Rule": `the rule for alternative names is "copy", it was "patterns"`},
	},
	"alternative names where they were denied": {
		base: func(p *profile.Profile) { p.API.SignCertificate.SubjectAltNames = nil },
		change: func(p *profile.Profile) {
			p.API.SignCertificate.SubjectAltNames = &extensions.SubjectAltNames{Rule: "patterns", DNS: []string{"a.example"}}
		},
		weaker: map[string]string{"API.SignCertificate.SubjectAltNames.Rule": `the rule for alternative names is "patterns", it was "deny"`},
	},
	"patterns that the old ones cover": {change: func(p *profile.Profile) {
		p.API.SignCertificate.SubjectAltNames = &extensions.SubjectAltNames{
			Rule: "Patterns", Required: true, DNS: []string{"*.SHOP.example", "api.shop.example"}, IP: []string{"10.0.7.0/24", "10.0.0.1"},
			URI: []string{"spiffe://shop.example/ns/a/b"}, Email: []string{"root@shop.example"},
		}
	}},
	"patterns with a wildcard inside the old ones": {
		base: func(p *profile.Profile) {
			p.API.SignCertificate.SubjectAltNames.URI = []string{"spiffe://*.example/ns/*"}
			p.API.SignCertificate.CRLDistributionPoints.URI = []string{"http://*.example/*/crl/*"}
		},
		change: func(p *profile.Profile) {
			p.API.SignCertificate.SubjectAltNames.URI = []string{"spiffe://shop.example/ns/*", "spiffe://*.example/ns/a/*/b", "spiffe://*.EXAMPLE/ns/a*"}
			p.API.SignCertificate.CRLDistributionPoints.URI = []string{"http://*.example/a/crl/b*", "http://a.example/*/crl/*/c"}
		},
	},
	"patterns with a wildcard that reaches beyond the old ones": {
		base: func(p *profile.Profile) {
			p.API.SignCertificate.SubjectAltNames.URI = []string{"spiffe://shop.example/ns/*/sa", "spiffe://shop.example/job/a*"}
		},
		change: func(p *profile.Profile) {
			p.API.SignCertificate.SubjectAltNames.URI = []string{"spiffe://shop.example/ns/*", "spiffe://*.example/ns/a/sa", "spiffe://shop.example/job/*"}
		},
		weaker: map[string]string{
			"API.SignCertificate.SubjectAltNames.URI": `alternative names may also match "spiffe://*.example/ns/a/sa", "spiffe://shop.example/job/*", "spiffe://shop.example/ns/*"`,
		},
	},
	"IPv4-mapped addresses in the network of all IPv6 addresses": {
		base: func(p *profile.Profile) { p.API.SignCertificate.SubjectAltNames.IP = []string{"::/0"} },
		change: func(p *profile.Profile) {
			p.API.SignCertificate.SubjectAltNames.IP = []string{"2001:db8::/32", "::ffff:10.0.0.1", "::ffff:0.0.0.0/96"}
		},
		weaker: map[string]string{"API.SignCertificate.SubjectAltNames.IP": `alternative names may also match "::ffff:0.0.0.0/96", "::ffff:10.0.0.1"`},
	},
	"fewer IPv4-mapped addresses": {
		base:   func(p *profile.Profile) { p.API.SignCertificate.SubjectAltNames.IP = []string{"::ffff:0.0.0.0/96"} },
		change: func(p *profile.Profile) { p.API.SignCertificate.SubjectAltNames.IP = []string{"::ffff:10.0.0.0/104"} },
	},
	"patterns that the old ones do not cover": {
		change: func(p *profile.Profile) {
			p.API.SignCertificate.SubjectAltNames = &extensions.SubjectAltNames{
				Rule: "patterns", Required: true, DNS: []string{"*.example", "a.b.shop.example"}, IP: []string{"10.0.0.0/15", "::1"},
				URI: []string{"spiffe://*.example/ns/a"}, Email: []string{"*@bank.example"},
			}
		},
		weaker: map[string]string{
			"API.SignCertificate.SubjectAltNames.DNS":   `alternative names may also match "*.example", "a.b.shop.example"`,
			"API.SignCertificate.SubjectAltNames.IP":    `alternative names may also match "10.0.0.0/15", "::1"`,
			"API.SignCertificate.SubjectAltNames.URI":   `alternative names may also match "spiffe://*.example/ns/a"`,
			"API.SignCertificate.SubjectAltNames.Email": `alternative names may also match "*@bank.example"`,
		},
	},
	"another key of the issuer": {
		change: func(p *profile.Profile) {
			p.API.SignCertificate.KeyIDs = append(p.API.SignCertificate.KeyIDs, keyrules.ID{ID: "ca-2"})
		},
		weaker: map[string]string{"API.SignCertificate.KeyIds": `"ca-2" may be used, only "ca-1" could`},
	},
	"any key of the issuer": {
		change: func(p *profile.Profile) { p.API.SignCertificate.KeyIDs = nil },
		weaker: map[string]string{"API.SignCertificate.KeyIds": `requests may bring keys of their own, they could only name "ca-1" of the broker`},
	},
	"a key that is no longer pinned": {
		change: func(p *profile.Profile) { p.API.SignCertificate.KeyIDs = []keyrules.ID{{ID: "ca-1"}} },
		weaker: map[string]string{"API.SignCertificate.KeyIds.SPKISHA256": `"ca-1" may be another public key than it was pinned to`},
	},
	"keys of the broker listed where requests brought theirs": {
		base: func(p *profile.Profile) {
			p.API.SignCertificate.KeyIDs, p.API.EncryptData.KeyIDs, p.API.SignData.KeyIDs = nil, nil, nil
		},
		change: func(p *profile.Profile) { p.API.EncryptData.KeyIDs = []keyrules.ID{{ID: "other"}} },
		weaker: map[string]string{"API.EncryptData.KeyIds": `"other" of the broker may be used, none of the broker's keys could`},
	},
	"every key of the broker where requests brought theirs": {
		base:   func(p *profile.Profile) { p.API.EncryptData.KeyIDs = nil },
		change: func(p *profile.Profile) { p.API.EncryptData.KeyIDs = []keyrules.ID{{ID: keyrules.AnyID}} },
		weaker: map[string]string{"API.EncryptData.KeyIds": `any key of the broker may be used, none of the broker's keys could`},
	},
	"every key of the broker where some were listed": {
		change: func(p *profile.Profile) { p.API.SignData.KeyIDs = []keyrules.ID{{ID: keyrules.AnyID}} },
		weaker: map[string]string{"API.SignData.KeyIds": `any key may be used, only "s1", "s2" could`},
	},
	"keys listed where every key of the broker could be used": {
		base:   func(p *profile.Profile) { p.API.EncryptData.KeyIDs = []keyrules.ID{{ID: keyrules.AnyID}} },
		change: func(p *profile.Profile) { p.API.EncryptData.KeyIDs = []keyrules.ID{{ID: "other"}} },
	},
	"a key of a key provider where every key of the broker could be used": {
		base: func(p *profile.Profile) { p.API.EncryptData.KeyIDs = []keyrules.ID{{ID: keyrules.AnyID}} },
		change: func(p *profile.Profile) {
			p.API.EncryptData.KeyIDs = []keyrules.ID{{ID: "other"}, {ID: "hsm/orders"}}
		},
		weaker: map[string]string{"API.EncryptData.KeyIds": `"hsm/orders" may be used, only any key could`},
	},
	"keys of requests where every key of the broker could be used": {
		base:   func(p *profile.Profile) { p.API.EncryptData.KeyIDs = []keyrules.ID{{ID: keyrules.AnyID}} },
		change: func(p *profile.Profile) { p.API.EncryptData.KeyIDs = nil },
		weaker: map[string]string{"API.EncryptData.KeyIds": `requests may bring keys of their own, they could only name any key of the broker`},
	},
	"larger RSA keys in requests than without a word about them": {
		base: func(p *profile.Profile) {
			p.API.SignData = &profile.SignData{SignAlg: "rsa", HashAlg: "sha-256"}
		},
		change: func(p *profile.Profile) {
			p.API.SignData.KeyConstraints.Issuer = map[string]keyrules.Size{"RSA": {MinKeySize: 2048, MaxKeySize: 8192}}
		},
		weaker: map[string]string{
			"API.SignData.KeyConstraints.Issuer.RSA.MaxKeySize": "the range of RSA keys is broader: it ends at 8192 bits, it ended at 4096",
		},
	},

	"one more wrapping algorithm": {
		change: func(p *profile.Profile) { p.API.DataKeys.WrapAlgs = []string{"rsa-oaep-sha-384", "aes-gcm"} },
		weaker: map[string]string{"API.DataKeys.WrapAlgs": "data keys may be wrapped with aes-gcm, which the profile refused"},
	},
	"another wrapping algorithm as strong": {change: func(p *profile.Profile) { p.API.DataKeys.WrapAlgs = []string{"RSA-OAEP-SHA-512"} }},
	"a wrapping algorithm that FIPS 140-3 does not approve": {
		change: func(p *profile.Profile) { p.API.DataKeys.WrapAlgs = []string{"rsa-oaep-sha-1"} },
		weaker: map[string]string{
			"API.DataKeys.WrapAlgs": "data keys may be wrapped with rsa-oaep-sha-1, which the profile refused",
			"API.DataKeys":          "GenerateDataKey, WrapKey, UnwrapKey, RewrapKey, GetPublicKey and DecryptStream are no longer approved by FIPS 140-3: WrapAlgs has rsa-oaep-sha-1, which FIPS 140-3 does not approve",
		},
	},
	"wrapping algorithms in another order, as strong": {
		base: func(p *profile.Profile) {
			p.API.DataKeys.WrapAlgs = []string{"rsa-oaep-sha-384", "aes-gcm", "rsa-oaep-sha-256"}
		},
		change: func(p *profile.Profile) {
			p.API.DataKeys.WrapAlgs = []string{"aes-gcm", "rsa-oaep-sha-256", "rsa-oaep-sha-384"}
		},
	},
	"a weaker wrapping algorithm that comes first": {
		base:   func(p *profile.Profile) { p.API.DataKeys.WrapAlgs = []string{"rsa-oaep-sha-384", "rsa-oaep-sha-1"} },
		change: func(p *profile.Profile) { p.API.DataKeys.WrapAlgs = []string{"rsa-oaep-sha-1", "rsa-oaep-sha-384"} },
		weaker: map[string]string{"API.DataKeys.WrapAlgs": "new data keys are wrapped with rsa-oaep-sha-1, they were wrapped with rsa-oaep-sha-384"},
	},
	"a wrapping algorithm without a context that is left over": {
		base: func(p *profile.Profile) {
			p.API.DataKeys.WrapAlgs, p.API.DataKeys.Context = []string{"aes-gcm", "aes-kw"}, "optional"
		},
		change: func(p *profile.Profile) { p.API.DataKeys.WrapAlgs = []string{"aes-kw"} },
		weaker: map[string]string{"API.DataKeys.WrapAlgs": "new data keys are wrapped with aes-kw, they were wrapped with aes-gcm"},
	},
	"another protocol of sessions": {
		change: func(p *profile.Profile) { p.API.Session.Protocols = []string{"SESSION-V1", "session-v2"} },
		weaker: map[string]string{"API.Session.Protocols": "clients may speak session-v2, which the profile refused"},
	},
	"a protocol of sessions that authenticates the broker": {
		change: func(p *profile.Profile) { native(p.API.Session, "session-v1", "session-hpke-p256") },
	},
	"a protocol of sessions that authenticates the broker, alone": {
		change: func(p *profile.Profile) { native(p.API.Session, "session-hpke-p256") },
	},
	"sessions with X-Wing": {
		base:   func(p *profile.Profile) { native(p.API.Session, "session-hpke-p256") },
		change: func(p *profile.Profile) { p.API.Session.Protocols[0] = "session-hpke-x-wing" },
		weaker: map[string]string{"API.Session": "InitSession, OpenRequest, SealReply, CloseSession and RekeySession are no longer approved by FIPS 140-3: Protocols has session-hpke-x-wing, which FIPS 140-3 does not approve"},
	},
	"sessions that a quantum computer can decrypt later": {
		base: func(p *profile.Profile) { native(p.API.Session, "session-hpke-x-wing") },
		change: func(p *profile.Profile) {
			p.API.Session.Protocols = []string{"session-hpke-x-wing", "session-hpke-p256"}
		},
		weaker: map[string]string{"API.Session.Protocols": "clients may speak session-hpke-p256, which the profile refused"},
	},
	"sessions with X-Wing beside those that a quantum computer can decrypt": {
		base:   func(p *profile.Profile) { native(p.API.Session, "session-hpke-p256", "session-hpke-x-wing") },
		change: func(p *profile.Profile) { p.API.Session.Protocols = []string{"session-hpke-p256"} },
	},
	"sessions that do not authenticate the broker": {
		base: func(p *profile.Profile) { native(p.API.Session, "session-hpke-p256") },
		change: func(p *profile.Profile) {
			p.API.Session.Protocols, p.API.Session.KeyAgreementAlg = []string{"session-v1"}, "ECDH_P256"
			p.API.Session.SignAlg, p.API.Session.HashAlg, p.API.Session.KeyIDs = "", "", nil
		},
		weaker: map[string]string{"API.Session.Protocols": "clients may speak session-v1, which the profile refused"},
	},
	"a weaker digest of sessions": {
		base:   func(p *profile.Profile) { native(p.API.Session, "session-hpke-p256") },
		change: func(p *profile.Profile) { p.API.Session.HashAlg = "sha-256" },
		weaker: map[string]string{"API.Session.HashAlg": `"sha-256" has a strength of 128 bits, "sha-384" had 192 bits`},
	},
	"sessions that RSA signs as well as ECDSA did": {
		base:   func(p *profile.Profile) { native(p.API.Session, "session-hpke-p256") },
		change: func(p *profile.Profile) { p.API.Session.SignAlg = "rsa" },
	},
	"sessions that a quantum computer can forge": {
		base: func(p *profile.Profile) {
			native(p.API.Session, "session-hpke-p256")
			p.API.Session.SignAlg, p.API.Session.HashAlg = "ml-dsa-65", ""
		},
		change: func(p *profile.Profile) { p.API.Session.SignAlg = "ed25519" },
		weaker: map[string]string{"API.Session.SignAlg": `a quantum computer can forge signatures of "ed25519", but could not forge signatures of "ml-dsa-65"`},
	},
	"sessions with smaller keys of ML-DSA": {
		base: func(p *profile.Profile) {
			native(p.API.Session, "session-hpke-p256")
			p.API.Session.SignAlg, p.API.Session.HashAlg = "ml-dsa-65", ""
		},
		change: func(p *profile.Profile) { p.API.Session.SignAlg = "ml-dsa-44" },
		weaker: map[string]string{"API.Session.SignAlg": `"ml-dsa-44" is weaker than "ml-dsa-65"`},
	},
	"another key that signs sessions": {
		base:   func(p *profile.Profile) { native(p.API.Session, "session-hpke-p256") },
		change: func(p *profile.Profile) { p.API.Session.KeyIDs[0].ID = "n2" },
		weaker: map[string]string{"API.Session.KeyIds": `"n2" may be used, only "n1" could`},
	},
	"a key that signs sessions, not pinned": {
		base: func(p *profile.Profile) {
			native(p.API.Session, "session-hpke-p256")
			p.API.Session.KeyIDs[0].SPKISHA256 = strings.Repeat("1", 64)
		},
		change: func(p *profile.Profile) { p.API.Session.KeyIDs[0].SPKISHA256 = "" },
		weaker: map[string]string{"API.Session.KeyIds.SPKISHA256": `"n1" may be another public key than it was pinned to`},
	},
	"tighter sessions": {change: func(p *profile.Profile) {
		s := p.API.Session
		s.MinLifetime, s.MaxLifetime, s.ClockWindow, s.MaxMessages, s.Store = "5m", "20m", "30s", 999, "memory"
	}},
	"sessions that live for longer": {
		change: func(p *profile.Profile) { p.API.Session.MaxLifetime = "" },
		weaker: map[string]string{"API.Session.MaxLifetime": "sessions live for up to 1h0m0s, it was 30m0s"},
	},
	"sessions that cannot be as short": {
		change: func(p *profile.Profile) { p.API.Session.MinLifetime = "11m" },
		weaker: map[string]string{"API.Session.MinLifetime": "sessions live for at least 11m0s, it was 10m0s"},
	},
	"a wider clock window": {
		change: func(p *profile.Profile) { p.API.Session.ClockWindow = "" },
		weaker: map[string]string{"API.Session.ClockWindow": "requests may be 5m0s away from the clock, it was 1m0s, so a stolen one can be used for longer"},
	},
	"more messages of a session": {
		change: func(p *profile.Profile) { p.API.Session.MaxMessages = 0 },
		weaker: map[string]string{"API.Session.MaxMessages": "a key encrypts up to 1048576 messages in each direction, it was 1000"},
	},
	"sessions that leave the memory": {
		change: func(p *profile.Profile) { p.API.Session.Store = "redis" },
		weaker: map[string]string{"API.Session.Store": "keys of sessions leave the memory of the broker"},
	},
	"larger data keys": {change: func(p *profile.Profile) { p.API.DataKeys.KeySize = 256 }},
	"smaller data keys": {
		change: func(p *profile.Profile) { p.API.DataKeys.KeySize = 128 },
		weaker: map[string]string{"API.DataKeys.KeySize": "the data key has 128 bits, it had 192"},
	},
	"data keys without a context": {
		change: func(p *profile.Profile) { p.API.DataKeys.Context = "" },
		weaker: map[string]string{"API.DataKeys.Context": `a context of data keys is "optional", it was "required", so a data key may be taken for another one`},
	},
	"another wrapping key": {
		change: func(p *profile.Profile) { p.API.DataKeys.KeyIDs = []keyrules.ID{{ID: "w2"}} },
		weaker: map[string]string{"API.DataKeys.KeyIds": `"w2" may be used, only "w1" could`},
	},
	"a wrapping key that is no longer pinned": {
		change: func(p *profile.Profile) { p.API.DataKeys.KeyIDs = []keyrules.ID{{ID: "w1"}} },
		weaker: map[string]string{"API.DataKeys.KeyIds.SPKISHA256": `"w1" may be another public key than it was pinned to`},
	},

	"a longer key and a longer tag": {change: func(p *profile.Profile) { p.API.EncryptData.KeySize, p.API.EncryptData.ShortTagLength = 256, 0 }},
	"a shorter key": {
		change: func(p *profile.Profile) { p.API.EncryptData.KeySize = 128 },
		weaker: map[string]string{"API.EncryptData.KeySize": "the key has 128 bits, it had 192"},
	},
	"a shorter tag": {
		base:   func(p *profile.Profile) { p.API.EncryptData.ShortTagLength = 0 },
		change: func(p *profile.Profile) { p.API.EncryptData.ShortTagLength = 96 },
		weaker: map[string]string{"API.EncryptData.ShortTagLength": "the authentication tag has 96 bits, it had 128"},
	},
	"another TagLength, which has no effect": {change: func(p *profile.Profile) { p.API.EncryptData.TagLength = 96 }},
	"a caller's nonce": {
		change: func(p *profile.Profile) { p.API.EncryptData.NonceStrategy = "" },
		weaker: map[string]string{
			"API.EncryptData.NonceStrategy": "the caller makes the nonce and may use one twice, which gives away what is encrypted; the broker made it",
			"API.EncryptData":               "EncryptData is no longer approved by FIPS 140-3: the caller makes the nonce, which FIPS 140-3 does not approve for AES-GCM (implementation guidance C.H); choose NonceStrategy random",
		},
	},
	"the broker's nonce": {
		base:   func(p *profile.Profile) { p.API.EncryptData.NonceStrategy = "user-provided" },
		change: func(p *profile.Profile) { p.API.EncryptData.NonceStrategy = "Random" },
	},
	"another key to encrypt with": {
		change: func(p *profile.Profile) { p.API.EncryptData.KeyIDs = []keyrules.ID{{ID: "k2"}} },
		weaker: map[string]string{"API.EncryptData.KeyIds": `"k2" may be used, only "k1" could`},
	},

	"signatures that a quantum computer can forge": {
		change: func(p *profile.Profile) { p.API.SignData.SigningMode, p.API.SignData.SignAlg = "legacy", "ecdsa" },
		weaker: map[string]string{"API.SignData.SigningMode": `a quantum computer can forge signatures of "ecdsa", but could not forge signatures of "ecdsa+ml-dsa-65"`},
	},
	"one signature of a hybrid": {
		change: func(p *profile.Profile) {
			p.API.SignData = &profile.SignData{SigningMode: "post-quantum", SignAlg: "ml-dsa-65", KeyIDs: p.API.SignData.KeyIDs}
		},
		weaker: map[string]string{"API.SignData.SigningMode": `"ml-dsa-65" is one signature, "ecdsa+ml-dsa-65" were two, and both had to be valid`},
	},
	"a weaker post-quantum signature": {
		change: func(p *profile.Profile) { p.API.SignData.SignAlg = "ecdsa+ml-dsa-44" },
		weaker: map[string]string{"API.SignData.SignAlg": `"ml-dsa-44" is weaker than "ml-dsa-65"`},
	},
	"a stronger post-quantum signature": {change: func(p *profile.Profile) { p.API.SignData.SignAlg = "ecdsa+ml-dsa-87" }},
	"a weaker digest of signatures": {
		change: func(p *profile.Profile) { p.API.SignData.HashAlg = "sha-256" },
		weaker: map[string]string{"API.SignData.HashAlg": `"sha-256" has a strength of 128 bits, "sha-384" had 192 bits`},
	},
	"broader keys to sign with": {
		change: func(p *profile.Profile) {
			p.API.SignData.KeyConstraints.Issuer["ECDSA"] = keyrules.Size{MinKeySize: 256, MaxKeySize: 384}
		},
		weaker: map[string]string{"API.SignData.KeyConstraints.Issuer.ECDSA.MinKeySize": "ECDSA keys of 256 bits may be used, 384 was the least"},
	},
	"broader keys to check with": {
		change: func(p *profile.Profile) {
			p.API.SignData.KeyConstraints.Subject["ECDSA"] = keyrules.Size{MinKeySize: 256, MaxKeySize: 521}
		},
		weaker: map[string]string{
			"API.SignData.KeyConstraints.Subject.ECDSA.MinKeySize": "ECDSA keys of 256 bits may be used, 384 was the least",
			"API.SignData.KeyConstraints.Subject.ECDSA.MaxKeySize": "the range of ECDSA keys is broader: it ends at 521 bits, it ended at 384",
		},
	},
	"no limits of keys to sign with": {
		change: func(p *profile.Profile) { p.API.SignData.KeyConstraints = keyrules.Constraints{} },
		weaker: map[string]string{
			"API.SignData.KeyConstraints.Issuer.ECDSA.MinKeySize": "ECDSA keys of 224 bits may be used, 384 was the least",
			"API.SignData.KeyConstraints.Issuer.ECDSA.MaxKeySize": "the range of ECDSA keys is broader: it ends at 521 bits, it ended at 384",
		},
	},
	"another format of signatures": {change: func(p *profile.Profile) { p.API.SignData.SignatureFormat = "" }},
	"RSA in the place of ECDSA as strong": {
		base:   func(p *profile.Profile) { p.API.SignData = legacy("ecdsa", "sha-256", "ECDSA", 256, 256) },
		change: func(p *profile.Profile) { p.API.SignData = legacy("rsa", "sha-256", "RSA", 3072, 8192) },
	},
	"ECDSA in the place of RSA as strong": {
		base:   func(p *profile.Profile) { p.API.SignData = legacy("rsa-pss", "sha-384", "RSA", 3072, 8192) },
		change: func(p *profile.Profile) { p.API.SignData = legacy("ecdsa", "sha-256", "ECDSA", 256, 521) },
	},
	"a digest with another algorithm that limits the strength": {
		base:   func(p *profile.Profile) { p.API.SignData = legacy("ecdsa", "sha-384", "ECDSA", 384, 521) },
		change: func(p *profile.Profile) { p.API.SignData = legacy("rsa", "sha-256", "RSA", 7680, 8192) },
		weaker: map[string]string{"API.SignData.SignAlg": `"rsa" has a strength of 128 bits by SHA-256, "ecdsa" had 192 bits by ECDSA keys of 384 bits`},
	},
	"a weaker digest with another kind of keys, in a hybrid": {
		base: func(p *profile.Profile) {
			p.API.SignData = legacy("ecdsa+ml-dsa-65", "sha-384", "ECDSA", 384, 521)
			p.API.SignData.SigningMode = "hybrid"
		},
		change: func(p *profile.Profile) {
			p.API.SignData = legacy("rsa+ml-dsa-65", "sha-256", "RSA", 7680, 8192)
			p.API.SignData.SigningMode = "hybrid"
		},
		weaker: map[string]string{"API.SignData.SignAlg": `"rsa+ml-dsa-65" has a strength of 128 bits by SHA-256, "ecdsa+ml-dsa-65" had 192 bits by ECDSA keys of 384 bits`},
	},
	"smaller keys of another kind that only verify, in a hybrid": {
		base: func(p *profile.Profile) {
			p.API.SignData = legacy("rsa+ml-dsa-65", "sha-384", "RSA", 3072, 8192)
			p.API.SignData.SigningMode = "hybrid"
		},
		change: func(p *profile.Profile) {
			p.API.SignData = legacy("ecdsa+ml-dsa-65", "sha-384", "ECDSA", 256, 521)
			p.API.SignData.SigningMode = "hybrid"
			p.API.SignData.KeyConstraints.Subject = map[string]keyrules.Size{"ECDSA": {MinKeySize: 224, MaxKeySize: 521}}
		},
		weaker: map[string]string{
			"API.SignData.KeyConstraints.Subject.ECDSA": "signatures of ECDSA keys of 224 bits are accepted, which have a strength of 112 bits; RSA keys of 3072 bits had 128 bits",
		},
	},
	"Ed25519 in the place of a stronger ECDSA": {
		base:   func(p *profile.Profile) { p.API.SignData = legacy("ecdsa", "sha-384", "ECDSA", 384, 521) },
		change: func(p *profile.Profile) { p.API.SignData = &profile.SignData{SignAlg: "ed25519"} },
		weaker: map[string]string{"API.SignData.SignAlg": `"ed25519" has a strength of 128 bits by Ed25519, "ecdsa" had 192 bits by ECDSA keys of 384 bits`},
	},
	"a hybrid in the place of an approved signature": {
		base: func(p *profile.Profile) { p.API.SignData = legacy("ecdsa", "sha-384", "ECDSA", 384, 384) },
		change: func(p *profile.Profile) {
			p.API.SignData.SigningMode, p.API.SignData.SignAlg = "hybrid", "ecdsa+ml-dsa-65"
		},
		weaker: map[string]string{"API.SignData": "SignData and VerifyData are no longer approved by FIPS 140-3: SignAlg has ml-dsa-65, which the validated module does not have"},
	},
	"any key to sign with": {
		change: func(p *profile.Profile) { p.API.SignData.KeyIDs = nil },
		weaker: map[string]string{"API.SignData.KeyIds": `requests may bring keys of their own, they could only name "s1", "s2" of the broker`},
	},
	"another pin of a key to sign with": {
		change: func(p *profile.Profile) {
			p.API.SignData.KeyIDs = []keyrules.ID{{ID: "s1", SPKISHA256: strings.Repeat("3", 64)}}
		},
		weaker: map[string]string{"API.SignData.KeyIds.SPKISHA256": `"s1" may be another public key than it was pinned to`},
	},
	"a pin where there was none": {change: func(p *profile.Profile) { p.API.SignData.KeyIDs[1].SPKISHA256 = strings.Repeat("3", 64) }},

	"another key manager": {
		change: func(p *profile.Profile) {
			p.KMS = &profile.KMS{Client: "pkcs11", Config: map[string]any{"address": "https://elsewhere.example"}, Cache: map[string]any{"seconds": 3600}}
		},
		weaker: map[string]string{
			"KMS.Client": `keys come from key manager "pkcs11", they came from key manager "vault"`,
			"KMS.Config": "the key manager is reached with other settings, so keys may come from elsewhere",
			"KMS.Cache":  "keys are kept with other settings, maybe for longer",
		},
	},
	"another file with the settings of a key manager, whose keys are kept": {
		base: func(p *profile.Profile) {
			p.KMS = &profile.KMS{Client: "openbao", Config: "openbao.yaml", Cache: false}
		},
		change: func(p *profile.Profile) {
			p.KMS = &profile.KMS{Client: "openbao", Config: "other.yaml", Cache: true}
		},
		weaker: map[string]string{
			"KMS.Config": "the key manager is reached with other settings, so keys may come from elsewhere",
			"KMS.Cache":  "keys are kept with other settings, maybe for longer",
		},
	},
	"no key manager": {
		change: func(p *profile.Profile) { p.KMS = nil },
		weaker: map[string]string{
			"KMS.Client": `keys come from the broker itself, they came from key manager "vault"`,
			"KMS.Config": "the key manager is reached with other settings, so keys may come from elsewhere",
			"KMS.Cache":  "keys are kept with other settings, maybe for longer",
		},
	},
	"the same library, not named": {change: func(p *profile.Profile) { p.Settings = nil }},

	"fewer callers": {
		base:   func(p *profile.Profile) { p.Callers.UIDs = []int64{1, 2} },
		change: func(p *profile.Profile) { p.Callers.UIDs = []int64{2} },
	},
	"callers where everybody could call": {
		base:   func(p *profile.Profile) { p.Callers = nil },
		change: func(p *profile.Profile) { p.Callers = &callers.Lists{UIDs: []int64{7}} },
	},
	"further callers": {
		change: func(p *profile.Profile) {
			p.Callers = &callers.Lists{Containers: []string{"worker", "web"}, UIDs: []int64{0, 1000}, GIDs: []int64{2000, 2001}}
		},
		weaker: map[string]string{
			"Callers.Containers": `callers of container "worker" may use the profile, only "web" could`,
			"Callers.UIDs":       "callers of user 0 may use the profile, only 1000 could",
			"Callers.GIDs":       "callers of group 2001 may use the profile, only 2000 could",
		},
	},
	"a list of callers that goes": {
		change: func(p *profile.Profile) { p.Callers.UIDs = nil },
		weaker: map[string]string{"Callers.UIDs": "callers of any user may use the profile, only 1000 could"},
	},
	"every caller": {
		change: func(p *profile.Profile) { p.Callers = nil },
		weaker: map[string]string{
			"Callers.Containers": `callers of any container may use the profile, only "web" could`,
			"Callers.UIDs":       "callers of any user may use the profile, only 1000 could",
			"Callers.GIDs":       "callers of any group may use the profile, only 2000 could",
		},
	},
	"more records": {change: func(p *profile.Profile) { p.Audit.Level = "all" }},
	"fewer records": {
		change: func(p *profile.Profile) { p.Audit = nil },
		weaker: map[string]string{
			"Audit.Level":    `the calls that are recorded are "none", they were "sensitive"`,
			"Audit.Required": "a call that can't be recorded is answered, it was refused",
		},
	},
	"another announcement of its end": {change: func(p *profile.Profile) { p.Deprecation = nil }},

	"a profile that was served and is invalid by now": {
		base:   func(p *profile.Profile) { p.API.HashData.HashAlg = "md5" },
		change: func(p *profile.Profile) { p.API.HashData.HashAlg = "sha3-512" },
		weaker: map[string]string{"": `the new profile can't be compared with the profile that was served, because this version finds that one invalid`},
	},
}

func subject(p *profile.Profile) map[string]keyrules.Size {
	return p.API.SignCertificate.KeyConstraints.Subject
}

func legacy(sign, hash, keys string, least, most int) *profile.SignData {
	return &profile.SignData{SignAlg: sign, HashAlg: hash, KeyConstraints: keyrules.Constraints{Issuer: map[string]keyrules.Size{keys: {MinKeySize: least, MaxKeySize: most}}}}
}
