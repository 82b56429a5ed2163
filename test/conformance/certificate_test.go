// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zmap/zlint/v3/lint"
)

// ofClients is a certificate for clients with a key of ECDSA.
func ofClients(t *testing.T, usage x509.KeyUsage) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1 << 40), Subject: pkix.Name{CommonName: "web.shop.example.com"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(0, 3, 0),
		KeyUsage: usage, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, AuthorityKeyId: []byte{1, 2, 3, 4}, SubjectKeyId: []byte{1, 2, 3, 4},
		BasicConstraintsValid: true, DNSNames: []string{"web.shop.example.com"},
	}
	issuer := &x509.Certificate{Subject: pkix.Name{CommonName: "Issuer"}, SubjectKeyId: []byte{4, 3, 2, 1}}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func TestAFindingOfTheLinterIs(t *testing.T) {
	registry, err := lint.GlobalRegistry().Filter(lint.FilterOptions{IncludeSources: rules})
	if err != nil {
		t.Fatal(err)
	}
	const encipherment = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	for sentence, test := range map[string]struct {
		usage    x509.KeyUsage
		exempt   []exemption
		failed   string
		exempted []string // rules
	}{
		"none where the certificate has none":               {x509.KeyUsageDigitalSignature, ofTheCatalogue, "", nil},
		"a failure where no rule is exempted":               {encipherment, nil, "error", nil},
		"a failure where another rule is exempted":          {encipherment, ofTheCatalogue[1:], "e_ecdsa_allowed_ku: error", nil},
		"noted where the catalogue's profiles are exempted": {encipherment, ofTheCatalogue, "", []string{ofTheCatalogue[0].rule, ofTheCatalogue[1].rule}},
	} {
		t.Run(sentence, func(t *testing.T) {
			v := certificateJudge{registry, test.exempt}.lint(ofClients(t, test.usage))
			var exempted []string
			for _, f := range v.exempted {
				exempted = append(exempted, f.rule)
				if f.level != lint.Error {
					t.Errorf("%s has the level %s", f.rule, f.level)
				}
			}
			slices.Sort(exempted)
			if (v.failed == "") != (test.failed == "") || !strings.Contains(v.failed, test.failed) || !slices.Equal(exempted, test.exempted) {
				t.Errorf("failed %q, exempted %q, want %q and %q", v.failed, exempted, test.failed, test.exempted)
			}
		})
	}
}
