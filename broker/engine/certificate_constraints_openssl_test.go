// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
)

// constrainedAuthority returns an issuer with name constraints, and one with the same name and key but without constraints.
func constrainedAuthority(t *testing.T, permitted, excluded []testName) engine.Issuer {
	return authority(t, "p-256", func(c *x509.Certificate) {
		c.SerialNumber = big.NewInt(int64(len(permitted) + len(excluded) + 1))
		general := func(names []testName) (all []asn1.RawValue) {
			for _, name := range names {
				all = append(all, name.general())
			}
			return all
		}
		if len(permitted)+len(excluded) > 0 {
			c.ExtraExtensions = []pkix.Extension{subtrees(t, general(permitted), general(excluded))}
		}
	})
}

// requestFor returns a request for names: alternative names, and the attributes of a subject.
func requestFor(t *testing.T, names []testName) []byte {
	var alternative []asn1.RawValue
	subject := rdnSequence{}
	for _, name := range names {
		if name.inSubject() {
			subject = append(subject, name.name...)
		} else {
			alternative = append(alternative, name.general())
		}
	}
	der, err := asn1.Marshal(subject)
	if err != nil {
		t.Error(err)
	}
	template := &x509.CertificateRequest{RawSubject: der}
	if len(alternative) > 0 {
		value, err := asn1.Marshal(alternative)
		if err != nil {
			t.Error(err)
		}
		template.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: value}}
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, template, certificateKey(t, "p-256"))
	if err != nil {
		t.Error(err)
	}
	return inPEM("CERTIFICATE REQUEST", request)
}

// authorityOfURI matches the authority of a URI: the part between "//" and the path (RFC 3986, section 3.2). Its second group is
// the host.
var authorityOfURI = regexp.MustCompile(`^[a-z]+://([^/?#@]*@)?(\[[^]]*\]|[^/?#:@]*)(:[0-9]*)?([/?#].*)?$`)

// refusedByRFC5280 returns the reason for which RFC 5280 refuses names that OpenSSL may accept. It is empty if only the verdict of
// OpenSSL counts.
func refusedByRFC5280(permitted, excluded []testName, names []testName) string {
	restricted := func(kind string) bool { return hasKind(permitted, kind) || hasKind(excluded, kind) }
	for _, name := range names {
		switch name.kind {
		case "URI":
			if !restricted("URI") {
				continue
			}
			host := ""
			if match := authorityOfURI.FindStringSubmatch(name.text); match != nil {
				host = strings.ToLower(match[2])
			}
			if !regexp.MustCompile(`[a-z]$`).MatchString(host) {
				return "a URI whose host is no name, where URIs are restricted"
			}
			within := func(base testName) bool {
				text := strings.ToLower(base.text)
				return base.kind == "URI" && (host == text || strings.HasPrefix(text, ".") && strings.HasSuffix(host, text))
			}
			if hasKind(permitted, "URI") && !containsName(permitted, within) {
				return "a URI whose host OpenSSL reads differently, not permitted"
			}
			if containsName(excluded, within) {
				return "a URI whose host OpenSSL reads differently, excluded"
			}
		case "IP":
			address, _ := netip.AddrFromSlice(name.der)
			if !address.Is4In6() || !restricted("IP") {
				continue
			}
			within := func(base testName) bool {
				network := net.IPNet{IP: base.der[:len(base.der)/2], Mask: base.der[len(base.der)/2:]}
				return base.kind == "IP" && len(base.der) == 8 && network.Contains(address.Unmap().AsSlice())
			}
			if hasKind(permitted, "IP") && !containsName(permitted, within) || containsName(excluded, within) {
				return "an address of IPv4 in one of IPv6, which Go takes for the address of IPv4"
			}
		case "directory", "subject":
			for _, base := range excluded {
				if base.kind == "directory" && beginsWith(name.name, base.name) {
					return "a name whose letters OpenSSL takes for others, excluded"
				}
			}
		}
		// RFC 5280 leaves open what wildcards and constraints without a text mean.
		if name.kind == "DNS" || name.kind == "CN" && !hasKind(names, "DNS") {
			parent, wildcard := strings.CutPrefix(strings.ToLower(name.text), "*")
			if !wildcard {
				continue
			}
			standsForOne := func(base testName) bool {
				label, isBelow := strings.CutSuffix(strings.ToLower(base.text), parent)
				return base.kind == "DNS" && isBelow && label != "" && !strings.Contains(label, ".")
			}
			if containsName(excluded, standsForOne) {
				return "a wildcard that stands for an excluded name"
			}
			isBelow := func(base testName) bool {
				text := "." + strings.TrimPrefix(strings.ToLower(base.text), ".")
				return base.kind == "DNS" && (base.text == "" || strings.HasSuffix(parent, text))
			}
			if name.kind == "CN" && (hasKind(permitted, "DNS") && !containsName(permitted, isBelow) || containsName(excluded, isBelow)) {
				return "a common name that is a wildcard, as a DNS name"
			}
		}
	}
	for _, name := range names {
		kind := map[string]string{"emailAddress": "mail"}[name.kind]
		if kind == "" {
			kind = name.kind
		}
		if (kind == "mail" || kind == "URI") && containsName(excluded, func(base testName) bool { return base.kind == kind && base.text == "" }) {
			return "a constraint without a text that excludes all"
		}
	}
	return ""
}
