// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	zx509 "github.com/zmap/zcrypto/x509"
	"github.com/zmap/zlint/v3"
	"github.com/zmap/zlint/v3/lint"
	"go.yaml.in/yaml/v3"

	"github.com/crypto-broker/crypto-broker-operator/test/conformance/wire"
)

const zlintModule = "github.com/zmap/zlint/v3"

func zlintSource() source {
	return source{zlintModule, moduleVersion(zlintModule), "rules of RFC 3279, 5280, 5480, 5891, 6962, 8813 and of the community, for certificates"}
}

// rules are the linter's rules for any certificate of the Internet. Rules of browsers and
// of mail are only for public authorities.
var rules = lint.SourceList{lint.RFC3279, lint.RFC5280, lint.RFC5480, lint.RFC5891, lint.RFC6962, lint.RFC8813, lint.Community}

// exemption is a rule of the linter that certificates may break.
type exemption struct{ rule, because string }

// ofTheCatalogue are exemptions for the profiles of the catalogue, which allow
// digitalSignature and keyEncipherment to clients with any key. Released brokers make
// such certificates, so the profiles stay as they are.
var ofTheCatalogue = []exemption{
	{"e_ecdsa_allowed_ku", "the released profiles ask for keyEncipherment whatever the key, and RFC 8813, section 3, excludes it for keys of ECDSA"},
	{"e_key_usage_and_extended_key_usage_inconsistent", "the released profiles ask for keyEncipherment beside clientAuth, for which RFC 5280, section 4.2.1.12, has digitalSignature and keyAgreement only"},
}

// finding is a problem that the linter found in a certificate.
type finding struct {
	rule  string
	level lint.LintStatus // warning or worse
}

// ownProfiles have features that the profiles of the catalogue do not have.
const ownProfiles = `
- Name: names
  API:
    SignCertificate:
      SignAlg: ecdsa
      HashAlg: sha-256
      SKIHashAlg: sha-256
      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 2160h}
      KeyConstraints: &keys
        Subject: {RSA: {MinKeySize: 2048, MaxKeySize: 4096}, ECDSA: {MinKeySize: 256, MaxKeySize: 521}, Ed25519: {MinKeySize: 256, MaxKeySize: 256}}
        Issuer: {RSA: {MinKeySize: 2048, MaxKeySize: 4096}, ECDSA: {MinKeySize: 256, MaxKeySize: 521}, Ed25519: {MinKeySize: 256, MaxKeySize: 256}}
      KeyUsage: [digitalSignature]
      ExtendedKeyUsage: [serverAuth, clientAuth]
      SubjectAltNames: {Rule: copy}
- Name: authority
  API:
    SignCertificate:
      SignAlg: ecdsa
      HashAlg: sha-384
      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 43800h}
      KeyConstraints: *keys
      KeyUsage: [keyCertSign, cRLSign]
      BasicConstraints: {CA: true, PathLenConstraint: 0}
- Name: pss
  API:
    SignCertificate:
      SignAlg: rsa-pss
      HashAlg: sha-256
      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 2160h}
      KeyConstraints: *keys
      KeyUsage: [digitalSignature]
- Name: ed25519-issuer
  API:
    SignCertificate:
      SignAlg: ed25519
      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 2160h}
      KeyConstraints: *keys
      KeyUsage: [digitalSignature]
`

// keyNotAllowed is in the broker's message about keys that a profile does not allow.
var keyNotAllowed = []refusal{
	{"a key of a size that the profile does not allow", " bits, expected "},
	{"a key of an algorithm that the profile does not allow", " key, expected "},
	{"a key of an algorithm that the profile does not allow", "KeyConstraints do not list"},
}

// keySizes are bounds in bits by the algorithm of a key.
type keySizes map[string]struct {
	Min int `yaml:"MinKeySize"`
	Max int `yaml:"MaxKeySize"`
}

func (k keySizes) allow(p party) bool {
	size, listed := k[p.algorithm]
	return listed && size.Min <= p.bits && p.bits <= size.Max
}

// certificateProfile is what a profile allows for keys. This program reads it itself, to
// notice a key that the profile allows and the broker refuses.
type certificateProfile struct {
	Name string `yaml:"Name"`
	API  struct {
		SignCertificate struct {
			SignAlg        string `yaml:"SignAlg"`
			KeyConstraints struct {
				Subject keySizes `yaml:"Subject"`
				Issuer  keySizes `yaml:"Issuer"`
			} `yaml:"KeyConstraints"`
		} `yaml:"SignCertificate"`
	} `yaml:"API"`
}

// allows reports whether an issuer may sign for a subject.
func (c certificateProfile) allows(issuer, subject party) bool {
	policy := c.API.SignCertificate
	signer := map[string]string{"rsa": "RSA", "rsa-pss": "RSA", "ecdsa": "ECDSA", "ed25519": "Ed25519"}[policy.SignAlg]
	return issuer.algorithm == signer && policy.KeyConstraints.Issuer.allow(issuer) && policy.KeyConstraints.Subject.allow(subject)
}

// variants are requests that differ in everything except keys.
var variants = map[string]wire.CertificateRequest{
	"as it is": {},
	"with all fields": {
		Subject:               `CN=web.shop.example.com,OU=Web+OU=Shop,O=Example\, Inc.,C=DE,DC=example,emailAddress=ops@example.com`,
		CRLDistributionPoints: []string{"http://crl.example.com/1.crl", "https://crl.example.com/2.crl"},
	},
}

// addCertificates adds every combination of a profile, an issuer's kind of key and a
// subject's kind of key.
func (p *plan) addCertificates(root string) error {
	catalogue, err := os.ReadFile(filepath.Join(root, "broker", "profile", "catalogue", "Profiles.yaml"))
	if err != nil {
		return err
	}
	registry, err := lint.GlobalRegistry().Filter(lint.FilterOptions{IncludeSources: rules})
	if err != nil {
		return fmt.Errorf("choose the rules of the linter: %w", err)
	}
	parties, err := newParties()
	if err != nil {
		return err
	}
	for _, part := range []struct {
		text  string
		judge certificateJudge
	}{
		{string(catalogue), certificateJudge{registry, ofTheCatalogue}},
		{ownProfiles, certificateJudge{registry, nil}},
	} {
		p.profiles.further += part.text
		var profiles []certificateProfile
		if err := yaml.Unmarshal([]byte(part.text), &profiles); err != nil {
			return fmt.Errorf("read the profiles: %w", err)
		}
		for _, profile := range profiles {
			if profile.API.SignCertificate.SignAlg == "" {
				return fmt.Errorf("the profile %q does not sign certificates", profile.Name)
			}
			p.profiles.expect++
			for _, issuer := range parties {
				for _, subject := range parties {
					for variant, request := range variants {
						request.CSR, request.CAKey, request.CACertificate = subject.csr, issuer.key, issuer.certificate
						p.add(row{"SignCertificate", profile.Name, fromCertificates},
							fmt.Sprintf("issuer %s, subject %s, %s", issuer.kind, subject.kind, variant),
							part.judge.issuing(profile, issuer, subject, request))
					}
				}
			}
		}
	}
	return nil
}

const fromCertificates = "zlint and OpenSSL"

// certificateJudge decides on certificates.
type certificateJudge struct {
	registry lint.Registry
	exempt   []exemption // rules whose findings are counted only
}

// issuing asks for a certificate and judges it.
func (j certificateJudge) issuing(profile certificateProfile, issuer, subject party, request wire.CertificateRequest) func(context.Context, *wire.Client) verdict {
	return func(ctx context.Context, c *wire.Client) verdict {
		der, err := c.Certificate(ctx, profile.Name, request)
		switch {
		case !profile.allows(issuer, subject):
			return judgeRefusal(err, keyNotAllowed)
		case err != nil:
			return failed("%v", err)
		}
		return first(verifyByOpenSSL(ctx, der, issuer.certificate), j.lint(der))
	}
}

func (j certificateJudge) lint(der []byte) verdict {
	certificate, err := zx509.ParseCertificate(der)
	if err != nil {
		return failed("the linter cannot read it: %v", err)
	}
	verdict := passed()
	for name, result := range zlint.LintCertificateEx(certificate, j.registry).Results {
		switch {
		case result.Status < lint.Warn:
		case slices.ContainsFunc(j.exempt, func(e exemption) bool { return e.rule == name }):
			verdict.exempted = append(verdict.exempted, finding{name, result.Status})
		default:
			return failed("%s: %s %s", name, result.Status, result.Details)
		}
	}
	return verdict
}
