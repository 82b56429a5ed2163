// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"crypto/x509"
	"encoding/asn1"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
)

// namePatterns are the patterns in the tests of subjects.
var namePatterns = []string{
	"SubjectAltNames:", "  Rule: patterns", `  DNS: ["*.shop.example.com", "db"]`, `  IP: [10.0.0.0/8, "2001:db8::/32"]`, `  Email: ["*@example.com"]`,
}

// verifiedFor reports whether OpenSSL accepts a certificate for a host.
func verifiedFor(t *testing.T, issuer, certificate *x509.Certificate, host string) bool {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root.pem")
	leaf := filepath.Join(filepath.Dir(root), "leaf.pem")
	for file, c := range map[string]*x509.Certificate{root: issuer, leaf: certificate} {
		if err := os.WriteFile(file, certificatePEM(c), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return exec.CommandContext(t.Context(), "openssl", "verify", "-CAfile", root, "-verify_hostname", host, leaf).Run() == nil
}

// TestACommonNameByPatterns first certifies each common name with a profile without patterns, to find out for which host OpenSSL
// accepts it.
func TestACommonNameByPatterns(t *testing.T) {
	issuer := authority(t, "p-256", nil)
	matched, copied := permissive(t, namePatterns...), permissive(t, "SubjectAltNames: {Rule: copy}")
	for sentence, c := range map[string]struct {
		name string
		tag  int    // the tag of its type, UTF8String if 0
		host string // that OpenSSL accepts the certificate for, if any
		want string // how verifiers read it; empty if it is certified
	}{
		"that matches":                              {name: "web.shop.example.com", host: "web.shop.example.com"},
		"that matches in capitals":                  {name: "WEB.shop.Example.com", host: "web.shop.example.com"},
		"that is a wildcard and matches":            {name: "*.shop.example.com", host: "web.shop.example.com"},
		"of one label that matches":                 {name: "db", host: "db"},
		"that is an address and matches":            {name: "10.1.2.3", host: "10.1.2.3"},
		"that is an address of IPv6 and matches":    {name: "2001:db8::1"},
		"that is a mail address and matches":        {name: "ops@example.com"},
		"of a person":                               {name: "Jane Doe"},
		"of a person with letters beyond ASCII":     {name: "Jürgen Groß", tag: asn1.TagBMPString},
		"of a service":                              {name: "system:node:worker-1"},
		"of an organization":                        {name: "Example, Inc. (Berlin)"},
		"of another host":                           {name: "www.bank.com", host: "www.bank.com", want: "a DNS name"},
		"of another host in capitals":               {name: "WWW.BANK.COM", host: "www.bank.com", want: "a DNS name"},
		"of another host as PrintableString":        {name: "www.bank.com", tag: asn1.TagPrintableString, host: "www.bank.com", want: "a DNS name"},
		"of another host as IA5String":              {name: "www.bank.com", tag: asn1.TagIA5String, host: "www.bank.com", want: "a DNS name"},
		"of another host as TeletexString":          {name: "www.bank.com", tag: asn1.TagT61String, host: "www.bank.com", want: "a DNS name"},
		"of another host as BMPString":              {name: "www.bank.com", tag: asn1.TagBMPString, host: "www.bank.com", want: "a DNS name"},
		"of another host of one label":              {name: "localhost", host: "localhost", want: "a DNS name"},
		"of other hosts":                            {name: "*.bank.com", host: "www.bank.com", want: "a DNS name"},
		"of other hosts by a part of a label":       {name: "w*.bank.com", host: "www.bank.com", want: "a DNS name"},
		"of all hosts":                              {name: "*", want: "a DNS name"},
		"of a host below a name that matches":       {name: "a.web.shop.example.com", host: "a.web.shop.example.com", want: "a DNS name"},
		"with a dot at its end":                     {name: "www.bank.com.", host: "www.bank.com.", want: "a DNS name"},
		"that matches but for a dot at its end":     {name: "web.shop.example.com.", host: "web.shop.example.com.", want: "a DNS name"},
		"that matches but for spaces at its ends":   {name: " web.shop.example.com ", want: "a DNS name"},
		"of another host with spaces at its ends":   {name: "  www.bank.com ", want: "a DNS name"},
		"with an underscore":                        {name: "_sip.bank.com", host: "_sip.bank.com", want: "a DNS name"},
		"with letters beyond ASCII":                 {name: "bänk.com", host: "bänk.com", want: "a DNS name"},
		"of one word with letters beyond ASCII":     {name: "bänk", host: "bänk", want: "a DNS name"},
		"with dots beyond ASCII":                    {name: "www。bank。com", want: "a DNS name"},
		"with a hyphen that is not seen":            {name: "www.ba\u00adnk.com", want: "a DNS name"},
		"of a host that was encoded":                {name: "xn--bnk-qla.com", host: "xn--bnk-qla.com", want: "a DNS name"},
		"that is another address":                   {name: "192.0.2.1", host: "192.0.2.1", want: "an IP address"},
		"that is an address as one number":          {name: "3221225985", host: "3221225985", want: "a DNS name"},
		"that is another address of IPv6":           {name: "2001:DB9::1", want: "an IP address"},
		"that is an address of IPv6 in brackets":    {name: "[2001:db9::1]", want: "an IP address"},
		"that is an address of a network interface": {name: "2001:db8::1%eth0", want: "an IP address"},
		"that is an address of IPv4 in one of IPv6": {name: "::ffff:10.1.2.3", want: "an IP address"},
		"that is another mail address":              {name: "ops@bank.com", want: "a mail address"},
		"that is a mail address with a name":        {name: "Jane Doe <jane@bank.com>", want: "a mail address"},
		"that is a mail address beyond ASCII":       {name: "ü@example.com", want: "a mail address"},
	} {
		t.Run(sentence, func(t *testing.T) {
			tag := c.tag
			if tag == 0 {
				tag = asn1.TagUTF8String
			}
			commonName := attributeName("CN", asn1.ObjectIdentifier{2, 5, 4, 3}, tag, c.name)
			request := engine.CertificateRequest{CSR: requestFor(t, []testName{commonName})}
			anyway := issued(t, copied, issuer, request)
			if c.host != "" && !verifiedFor(t, issuer.Certificate, anyway, c.host) {
				t.Errorf("OpenSSL does not take the certificate for one of %s", c.host)
			}
			if c.want == "" {
				issued(t, matched, issuer, request)
				return
			}
			refusedWith(t, matched, issuer, request, "csr has the common name "+strconv.Quote(c.name)+", which verifiers read as "+c.want+" and no pattern of the profile allows")
		})
	}
}

func TestASubjectIsRefusedByPatternsThatHas(t *testing.T) {
	issuer, policy := authority(t, "p-256", nil), permissive(t, namePatterns...)
	commonName := func(text string) testName {
		return attributeName("CN", asn1.ObjectIdentifier{2, 5, 4, 3}, asn1.TagUTF8String, text)
	}
	mail := func(tag int, text string) testName {
		return attributeName("emailAddress", asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}, tag, text)
	}
	both := commonName("Jane Doe")
	both.name[0] = append(both.name[0], commonName("www.bank.com").name[0][0])
	bits := commonName("")
	bits.name[0][0].Value = asn1.RawValue{Tag: asn1.TagBitString, Bytes: []byte("\x00www.bank.com")}
	dns := testName{kind: "DNS", text: "web.shop.example.com"}
	const bank = `csr has the common name "www.bank.com", which verifiers read as a DNS name and no pattern of the profile allows`
	for sentence, c := range map[string]struct {
		names   []testName
		subject string
		want    string // empty if it is certified
	}{
		"nothing else beside a name that matches": {names: []testName{commonName("Jane Doe"), mail(asn1.TagIA5String, "ops@example.com"), dns}},
		"another host beside a name that matches": {names: []testName{commonName("www.bank.com"), dns}, want: bank},
		"another host as its second common name":  {names: []testName{commonName("web.shop.example.com"), commonName("www.bank.com")}, want: bank},
		"another host as its first common name":   {names: []testName{commonName("www.bank.com"), commonName("web.shop.example.com")}, want: bank},
		"another host in one component with more": {names: []testName{both}, want: bank},
		"a common name with a NUL":                {names: []testName{commonName("www.bank.com\x00.shop.example.com")}, want: `csr has the common name "www.bank.com\x00.shop.example.com" with a control character, expected none`},
		"a common name that is no text":           {names: []testName{bits}, want: "csr has a common name of the ASN.1 type 3, which cannot be read, expected a string such as UTF8String"},
		"another mail address":                    {names: []testName{mail(asn1.TagIA5String, "ops@bank.com")}, want: `csr has the emailAddress "ops@bank.com", which no pattern of the profile allows`},
		"another mail address as UTF8String":      {names: []testName{mail(asn1.TagUTF8String, "ops@bank.com")}, want: `csr has the emailAddress "ops@bank.com", which no pattern of the profile allows`},
		"a second mail address that is another":   {names: []testName{mail(asn1.TagIA5String, "ops@example.com"), mail(asn1.TagIA5String, "ops@bank.com")}, want: `csr has the emailAddress "ops@bank.com", which no pattern of the profile allows`},
		"a mail address without a host":           {names: []testName{mail(asn1.TagIA5String, "ops")}, want: `csr has the emailAddress "ops", which no pattern of the profile allows`},
		"a host of the request that matches":      {names: []testName{commonName("www.bank.com")}, subject: "CN=web.shop.example.com"},
		"another host of the request":             {names: []testName{dns}, subject: "O=Example,CN=www.bank.com", want: `subject has the common name "www.bank.com", which verifiers read as a DNS name and no pattern of the profile allows`},
		"two hosts of the request":                {subject: "CN=web.shop.example.com+CN=www.bank.com", want: `subject has the common name "www.bank.com", which verifiers read as a DNS name and no pattern of the profile allows`},
		"another mail address of the request":     {subject: "CN=Jane Doe,emailAddress=jane@bank.com", want: `subject has the emailAddress "jane@bank.com", which no pattern of the profile allows`},
	} {
		t.Run(sentence, func(t *testing.T) {
			request := engine.CertificateRequest{CSR: requestFor(t, c.names), Subject: c.subject}
			if c.want == "" {
				issued(t, policy, issuer, request)
				return
			}
			refusedWith(t, policy, issuer, request, c.want)
		})
	}
}

// TestTheSubjectIsFreeWithoutPatterns checks that the broker behaves like released brokers.
func TestTheSubjectIsFreeWithoutPatterns(t *testing.T) {
	for _, lines := range [][]string{nil, {"SubjectAltNames: {Rule: deny}"}, {"SubjectAltNames: {Rule: copy}"}} {
		certificate := issued(t, permissive(t, lines...), authority(t, "p-256", nil), engine.CertificateRequest{CSR: csr(t, "p-256", nil), Subject: "CN=www.bank.com,emailAddress=ops@bank.com"})
		if certificate.Subject.CommonName != "www.bank.com" {
			t.Errorf("%v: subject %s", lines, certificate.Subject)
		}
	}
}
