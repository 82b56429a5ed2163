// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
)

// TestProfilesOfTheCatalogueGiveTheVerdictsOfReleasedBrokers signs with every
// kind of issuer for every kind of requester. The allowed combinations are listed here, and not derived from the profiles.
func TestProfilesOfTheCatalogueGiveTheVerdictsOfReleasedBrokers(t *testing.T) {
	issuers := []string{"rsa-2048", "rsa-3072", "rsa-4096", "p-256", "p-384", "p-521", "ed25519"}
	subjects := []string{"rsa-1024", "rsa-2048", "rsa-3072", "rsa-4096", "rsa-7680", "rsa-15380", "p-224", "p-256", "p-384", "p-521", "ed25519"}
	for name, allowed := range map[string]struct {
		issuers, subjects []string
		algorithm         x509.SignatureAlgorithm
		validity          time.Duration
	}{
		"Default": {
			[]string{"p-384", "p-521"},
			[]string{"rsa-2048", "rsa-3072", "rsa-4096", "p-256", "p-384", "p-521"},
			x509.ECDSAWithSHA512, 8761 * time.Hour,
		},
		"KSA-MODERATE-2020": {
			[]string{"rsa-3072", "rsa-4096"},
			[]string{"rsa-3072", "rsa-4096", "rsa-7680", "p-256", "p-384"},
			x509.SHA384WithRSA, 26281 * time.Hour,
		},
		"KSA-ADVANCED-2020": {
			[]string{"p-521"}, []string{"p-521"},
			x509.ECDSAWithSHA512, 43801 * time.Hour,
		},
		"FIPS-140-3-128bit": {
			[]string{"rsa-3072", "rsa-4096"},
			[]string{"rsa-3072", "rsa-4096", "rsa-7680", "p-256", "p-384", "p-521"},
			x509.SHA256WithRSA, 8761 * time.Hour,
		},
		"FIPS-140-3-192bit": {
			[]string{"p-384", "p-521"},
			[]string{"rsa-7680", "p-384", "p-521"},
			x509.ECDSAWithSHA384, 8761 * time.Hour,
		},
		"FIPS-140-3-256bit": {
			[]string{"p-521"},
			[]string{"rsa-15380", "p-521"},
			x509.ECDSAWithSHA512, 4381 * time.Hour,
		},
	} {
		policy := certificateProfile(t, name)
		for _, issuerKind := range issuers {
			issuer := authority(t, issuerKind, nil)
			for _, subjectKind := range subjects {
				t.Run(name+", issuer "+issuerKind+", subject "+subjectKind, func(t *testing.T) {
					request := csr(t, subjectKind, nil)
					der, err := engine.IssueCertificate(policy, issuer, engine.CertificateRequest{CSR: request}, time.Now())
					if want := refusedField(allowed.issuers, issuerKind, allowed.subjects, subjectKind); want != "" {
						var refusal *engine.InputError
						if !errors.As(err, &refusal) || refusal.Field != want || !strings.Contains(refusal.Problem, "expected") {
							t.Fatalf("error %v, want one about %s", err, want)
						}
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					certificate, err := x509.ParseCertificate(der)
					if err != nil {
						t.Fatal(err)
					}
					if certificate.SignatureAlgorithm != allowed.algorithm {
						t.Errorf("signed with %v, want %v", certificate.SignatureAlgorithm, allowed.algorithm)
					}
					if period := certificate.NotAfter.Sub(certificate.NotBefore); period != allowed.validity {
						t.Errorf("valid for %v, want %v", period, allowed.validity)
					}
					verifyByOpenSSL(t, issuer.Certificate, certificate)
				})
			}
		}
	}
}

func refusedField(issuers []string, issuer string, subjects []string, subject string) string {
	switch {
	case !slices.Contains(issuers, issuer):
		return "caPrivateKey"
	case !slices.Contains(subjects, subject):
		return "csr"
	default:
		return ""
	}
}

func TestEverySignatureAlgorithmSignsWithEveryDigest(t *testing.T) {
	for algorithm, c := range map[string]struct {
		issuer string
		want   x509.SignatureAlgorithm
	}{
		"rsa sha-256":     {"rsa-2048", x509.SHA256WithRSA},
		"rsa sha-384":     {"rsa-2048", x509.SHA384WithRSA},
		"rsa sha-512":     {"rsa-2048", x509.SHA512WithRSA},
		"rsa-pss sha-256": {"rsa-2048", x509.SHA256WithRSAPSS},
		"rsa-pss sha-384": {"rsa-2048", x509.SHA384WithRSAPSS},
		"rsa-pss sha-512": {"rsa-2048", x509.SHA512WithRSAPSS},
		"ecdsa sha-256":   {"p-256", x509.ECDSAWithSHA256},
		"ecdsa sha-384":   {"p-256", x509.ECDSAWithSHA384},
		"ecdsa sha-512":   {"p-384", x509.ECDSAWithSHA512},
		"ed25519":         {"ed25519", x509.PureEd25519},
	} {
		t.Run(algorithm, func(t *testing.T) {
			sign, hash, found := strings.Cut(algorithm, " ")
			lines := []string{"SignAlg: " + sign}
			if found {
				lines = append(lines, "HashAlg: "+hash)
			}
			issuer := authority(t, c.issuer, nil)
			certificate := issued(t, permissive(t, lines...), issuer, engine.CertificateRequest{CSR: csr(t, "ed25519", nil)})
			if certificate.SignatureAlgorithm != c.want {
				t.Errorf("signed with %v, want %v", certificate.SignatureAlgorithm, c.want)
			}
			verifyByOpenSSL(t, issuer.Certificate, certificate)
		})
	}
}
