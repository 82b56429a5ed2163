// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	oidNameConstraints = asn1.ObjectIdentifier{2, 5, 29, 30}
	oidEmailAddress    = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}
)

// tagDirectory is the alternative of GeneralName that is a distinguished name.
const tagDirectory = 4

// checkNameConstraints checks that a new certificate has only names that its
// issuer's certificate allows (RFC 5280, section 4.2.1.10). Everybody who
// verifies it would refuse it otherwise.
//
// The library judges DNS names, addresses and URIs, as it does when it verifies a
// chain. It knows no distinguished names, which are judged here. Where the issuer
// restricts names of any other kind, the certificate must have none of it.
func checkNameConstraints(issuer Issuer, request CertificateRequest, der []byte, now time.Time) error {
	constraints := extension(issuer.Certificate.Extensions, oidNameConstraints)
	if constraints == nil {
		return nil
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return fmt.Errorf("engine: read the certificate that was made: %w", err)
	}
	problem, err := constraintsProblem(constraints, leaf)
	if err != nil {
		return issuer.certificateProblem("has the extension NameConstraints in a form that cannot be read, expected that of RFC 5280")
	}
	if problem == "" {
		if problem, err = chainProblem(issuer.Certificate, leaf, now); err != nil {
			return err
		}
	}
	if problem == "" {
		return nil
	}
	field := "csr"
	if request.Subject != "" && len(leaf.DNSNames)+len(leaf.EmailAddresses)+len(leaf.IPAddresses)+len(leaf.URIs) == 0 {
		field = "subject"
	}
	return inputError(field, "asks for a name that the issuer may not certify by the NameConstraints of its certificate: %s", problem)
}

// extension returns the value of an extension, nil where there is none.
func extension(all []pkix.Extension, id asn1.ObjectIdentifier) []byte {
	for _, e := range all {
		if e.Id.Equal(id) {
			return e.Value
		}
	}
	return nil
}

// chainProblem has the library verify the certificate with its issuer as the
// root. Names in the subject count where verifiers read them as others: an
// address of mail, as the RFC says, and a common name that is a host name where
// no alternative name is one, as OpenSSL does.
func chainProblem(issuer, leaf *x509.Certificate, now time.Time) (string, error) {
	root, named := *issuer, *leaf
	// Those are name constraints and alternative names of a kind that the library
	// does not know, which were judged before.
	root.UnhandledCriticalExtensions, named.UnhandledCriticalExtensions = nil, nil
	// The profiles of certificates have no policies, whatever the issuer wants.
	root.RequireExplicitPolicy, root.RequireExplicitPolicyZero = 0, false
	for _, attribute := range leaf.Subject.Names {
		if text, ok := attribute.Value.(string); ok && attribute.Type.Equal(oidEmailAddress) {
			named.EmailAddresses = append(named.EmailAddresses[:len(named.EmailAddresses):len(named.EmailAddresses)], text)
		}
	}
	if name := leaf.Subject.CommonName; len(leaf.DNSNames) == 0 && strings.Contains(name, ".") && isHostName(name) {
		named.DNSNames = []string{name}
	}
	if extension(leaf.Extensions, oidSubjectAltName) == nil {
		// The library looks at names only where there is this extension.
		named.Extensions = append(named.Extensions[:len(named.Extensions):len(named.Extensions)], pkix.Extension{Id: oidSubjectAltName})
	}
	roots := x509.NewCertPool()
	roots.AddCert(&root)
	_, err := named.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	var invalid x509.CertificateInvalidError
	switch {
	case err == nil:
		return "", nil
	case errors.As(err, &invalid) && invalid.Reason == x509.CANotAuthorizedForThisName:
		return quote(invalid.Detail, 300), nil
	default:
		return "", fmt.Errorf("engine: verify the certificate that was made: %w", err)
	}
}

// generalSubtree is GeneralSubtree with its GeneralName as it is.
type generalSubtree struct {
	Base    asn1.RawValue
	Minimum int `asn1:"optional,tag:0"`
	Maximum int `asn1:"optional,tag:1"`
}

type nameConstraints struct {
	Permitted []generalSubtree `asn1:"optional,tag:0"`
	Excluded  []generalSubtree `asn1:"optional,tag:1"`
}

// constraintsProblem judges distinguished names, and the kinds of names that
// nobody here can judge.
func constraintsProblem(value []byte, leaf *x509.Certificate) (string, error) {
	var constraints nameConstraints
	if rest, err := asn1.Unmarshal(value, &constraints); err != nil || len(rest) > 0 {
		return "", errors.New("engine: name constraints cannot be read")
	}
	names, ok := namesOf(leaf)
	if !ok {
		return "the alternative names cannot be read", nil
	}
	permitted, excluded, listed := [][]byte(nil), [][]byte(nil), map[int]bool{}
	for i, subtree := range append(constraints.Permitted[:len(constraints.Permitted):len(constraints.Permitted)], constraints.Excluded...) {
		listed[subtree.Base.Tag] = true
		switch {
		case subtree.Base.Tag != tagDirectory:
		case i < len(constraints.Permitted):
			permitted = append(permitted, subtree.Base.Bytes)
		default:
			excluded = append(excluded, subtree.Base.Bytes)
		}
	}
	for _, name := range names {
		switch name.Tag {
		case tagEmail, tagDNS, tagURI, tagIP:
		case tagDirectory:
			if !isDistinguishedName(name.Bytes) {
				return "a directory name cannot be read", nil
			}
			within, err := withinAny(name.Bytes, permitted)
			if err != nil {
				return "", err
			}
			without, err := withinAny(name.Bytes, excluded)
			if err != nil {
				return "", err
			}
			switch {
			case len(permitted) > 0 && !within:
				return "its subject, or a directory name, begins with none of the permitted ones", nil
			case without:
				return "its subject, or a directory name, begins with an excluded one", nil
			}
		default:
			if listed[name.Tag] && name.Tag < len(nameKinds) {
				return fmt.Sprintf("names of the kind %q are restricted, and this broker cannot tell how, expected none of them", nameKinds[name.Tag]), nil
			}
		}
	}
	return "", nil
}

// namesOf are the alternative names of a certificate and, as a directory name,
// its subject if it has one; false where they cannot be read.
func namesOf(leaf *x509.Certificate) (names []asn1.RawValue, ok bool) {
	if value := extension(leaf.Extensions, oidSubjectAltName); value != nil {
		if rest, err := asn1.Unmarshal(value, &names); err != nil || len(rest) > 0 {
			return nil, false
		}
	}
	if string(leaf.RawSubject) != emptyName {
		names = append(names, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: tagDirectory, Bytes: leaf.RawSubject})
	}
	return names, true
}

// withinAny tells whether a distinguished name begins with one of the bases.
func withinAny(name []byte, bases [][]byte) (bool, error) {
	for _, base := range bases {
		within, err := within(name, base)
		if err != nil || within {
			return within, err
		}
	}
	return false, nil
}

// within tells whether a distinguished name begins with another one, by the rules
// of RFC 5280, section 7.1, as far as case and spaces go.
func within(name, base []byte) (bool, error) {
	var inner, outer pkix.RDNSequence
	if _, err := asn1.Unmarshal(name, &inner); err != nil {
		return false, err
	}
	if _, err := asn1.Unmarshal(base, &outer); err != nil {
		return false, err
	}
	if len(outer) > len(inner) {
		return false, nil
	}
	for i, want := range outer {
		if !sameRDN(inner[i], want) {
			return false, nil
		}
	}
	return true, nil
}

func isDistinguishedName(der []byte) bool {
	_, err := asn1.Unmarshal(der, &pkix.RDNSequence{})
	return err == nil
}

// sameRDN compares two sets of attributes. DER sorts them.
func sameRDN(a, b pkix.RelativeDistinguishedNameSET) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Type.Equal(b[i].Type) || !sameValue(a[i].Value, b[i].Value) {
			return false
		}
	}
	return true
}

func sameValue(a, b any) bool {
	textA, isA := a.(string)
	textB, isB := b.(string)
	if isA && isB {
		fold := func(s string) string { return strings.Join(strings.Fields(s), " ") }
		return strings.EqualFold(fold(textA), fold(textB))
	}
	derA, errA := asn1.Marshal(a)
	derB, errB := asn1.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(derA, derB)
}
