// SPDX-License-Identifier: Apache-2.0

package engine

import (
	// These packages register the digests of key identifiers.
	_ "crypto/sha1"
	_ "crypto/sha256"
	_ "crypto/sha3"
	_ "crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/extensions"
)

var (
	oidBasicConstraints = asn1.ObjectIdentifier{2, 5, 29, 19}
	oidSubjectAltName   = asn1.ObjectIdentifier{2, 5, 29, 17}
	oidKeyUsage         = asn1.ObjectIdentifier{2, 5, 29, 15}

	// notCA is BasicConstraints with only defaults. The library would write a critical
	// extension, but released brokers write one that is not critical.
	notCA = []byte{0x30, 0x00}
)

// keyIdentifierSize is the size of key identifiers in bytes (RFC 5280, section 4.2.1.2,
// method 1). Longer digests are cut to this size (RFC 7093, section 2).
const keyIdentifierSize = 20

// keyIdentifier returns the first 20 bytes of the digest of the bits of a public key.
func keyIdentifier(policy *profile.CertificatePolicy, spki []byte) ([]byte, error) {
	var key struct {
		Algorithm pkix.AlgorithmIdentifier
		PublicKey asn1.BitString
	}
	if rest, err := asn1.Unmarshal(spki, &key); err != nil || len(rest) > 0 {
		return nil, fmt.Errorf("engine: a public key that was read before cannot be read: %w", err)
	}
	digest := policy.KeyIdentifierHash().New()
	digest.Write(key.PublicKey.Bytes)
	return digest.Sum(nil)[:keyIdentifierSize], nil
}

// alternativeNames returns the value of the extension SubjectAltName by the rule of the
// profile, or nil if the certificate has no alternative names.
func alternativeNames(policy *extensions.NamePolicy, csr *x509.CertificateRequest) ([]byte, error) {
	if policy.Rule() == extensions.NamesDenied {
		return nil, nil
	}
	var value []byte
	for _, extension := range csr.Extensions {
		if extension.Id.Equal(oidSubjectAltName) {
			if value != nil {
				return nil, inputError("csr", "asks for alternative names twice, expected one extension SubjectAltName")
			}
			value = extension.Value
		}
	}
	switch {
	case value == nil && policy.Required():
		return nil, inputError("csr", "asks for no alternative name, expected an extension SubjectAltName with at least one name, because the profile requires it")
	case value == nil:
		return nil, nil
	}
	var names []asn1.RawValue
	if rest, err := asn1.Unmarshal(value, &names); err != nil || len(rest) > 0 || len(names) == 0 {
		return nil, inputError("csr", "has an extension SubjectAltName without names, expected at least one or no such extension")
	}
	for _, name := range names {
		if err := checkName(policy, name); err != nil {
			return nil, err
		}
	}
	return value, nil
}

// nameKinds are the alternatives of GeneralName (RFC 5280, section 4.2.1.6). The index is
// the tag.
var nameKinds = [...]string{"other", "mail", "DNS", "X.400", "directory", "EDI", "URI", "IP", "registered"}

const (
	tagEmail = 1
	tagDNS   = 2
	tagURI   = 6
	tagIP    = 7
)

// checkName checks that a name of a request is valid. If the profile has patterns, the name
// has to match one. Names are not secret, so messages quote them.
func checkName(policy *extensions.NamePolicy, name asn1.RawValue) error {
	if name.Class != asn1.ClassContextSpecific || name.Tag >= len(nameKinds) {
		return inputError("csr", "has an alternative name of an unknown kind")
	}
	matched := policy.Rule() == extensions.NamesMatched
	kind, text := nameKinds[name.Tag], string(name.Bytes)
	valid := !name.IsCompound
	var allowed bool
	switch name.Tag {
	case tagEmail:
		at := strings.LastIndexByte(text, '@')
		valid = valid && isVisibleASCII(text) && at > 0 && isHostName(text[at+1:])
		allowed = policy.AllowsEmail(text)
	case tagDNS:
		valid = valid && isHostName(strings.TrimPrefix(text, "*."))
		allowed = policy.AllowsDNS(text)
	case tagURI:
		u, err := url.Parse(text)
		valid = valid && err == nil && u.Scheme != "" && isVisibleASCII(text)
		allowed = policy.AllowsURI(text)
	case tagIP:
		var address netip.Addr
		address, ok := netip.AddrFromSlice(name.Bytes)
		valid, text = valid && ok, address.String()
		allowed = policy.AllowsIP(address)
	default:
		// The rule "copy" accepts other kinds of names as they are. There are no patterns
		// for them.
		if matched {
			return inputError("csr", "asks for an alternative name of the kind %q, expected only names that a pattern of the profile allows", kind)
		}
		return nil
	}
	switch {
	case !valid:
		return inputError("csr", "asks for the %s name %s, which is not valid", kind, quote(text, 256))
	case matched && !allowed:
		return inputError("csr", "asks for the %s name %s, which no pattern of the profile allows", kind, quote(text, 256))
	}
	return nil
}

// isHostName reports whether a text is a host name. It allows underscores, which are in use
// although no standard allows them in host names.
func isHostName(text string) bool {
	tooLong := func(label string) bool { return len(label) > 63 }
	return len(text) <= 253 && !slices.ContainsFunc(strings.Split(text, "."), tooLong) && hasHostSyntax(text)
}

// hasHostSyntax reports whether a text has the syntax of a host name, whatever its length.
func hasHostSyntax(text string) bool {
	for label := range strings.SplitSeq(text, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range []byte(label) {
			letter := c|0x20 >= 'a' && c|0x20 <= 'z'
			digit := c >= '0' && c <= '9'
			if !letter && !digit && c != '-' && c != '_' {
				return false
			}
		}
	}
	return true
}
