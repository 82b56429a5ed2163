// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

var oidNameConstraints = asn1.ObjectIdentifier{2, 5, 29, 30}

// maxComparisons is the largest number of names multiplied by the number of constraints.
// OpenSSL refuses certificates that need more comparisons.
const maxComparisons = 1 << 20

// checkNameConstraints checks that a new certificate has only names that its issuer's
// certificate allows (RFC 5280, section 4.2.1.10). Verifiers would refuse it otherwise.
// alternative is the value of its extension SubjectAltName, nil if it has none.
//
// If RFC 5280 and OpenSSL treat a name differently, both have to allow it. If the issuer's
// certificate constrains names of a kind that the broker cannot compare, the new certificate
// must not have such names.
func checkNameConstraints(issuer Issuer, request CertificateRequest, subject, alternative []byte) error {
	value := extension(issuer.Certificate.Extensions, oidNameConstraints)
	if value == nil {
		return nil
	}
	constraints, err := readConstraints(value)
	if err != nil {
		return issuer.certificateProblem("has the extension NameConstraints in a form that cannot be read, expected the form of RFC 5280")
	}
	problem := constraints.problemOf(subject, alternative)
	if problem == "" {
		return nil
	}
	field := "csr"
	if alternative == nil {
		field = request.subjectField()
	}
	return inputError(field, "asks for a name that the issuer may not certify by the NameConstraints of its certificate: %s", problem)
}

// extension returns the value of an extension, or nil if there is none.
func extension(all []pkix.Extension, id asn1.ObjectIdentifier) []byte {
	for _, e := range all {
		if e.Id.Equal(id) {
			return e.Value
		}
	}
	return nil
}

// subtree is one name of a constraint.
type subtree struct {
	value     []byte
	directory []nameComponentSET // value as a directory name, nil for other kinds
}

// subtrees are the constraints of one kind of names.
type subtrees struct {
	permitted, excluded []subtree
	// limited reports whether one of them has a minimum or a maximum, which RFC 5280 does not
	// allow.
	limited bool
}

// nameConstraints are the constraints of an issuer, by the tag of their kind.
type nameConstraints map[int]*subtrees

func readConstraints(value []byte) (nameConstraints, error) {
	type generalSubtree struct {
		Base    asn1.RawValue
		Minimum int `asn1:"optional,tag:0"`
		Maximum int `asn1:"optional,tag:1,default:-1"`
	}
	var sequence struct {
		Permitted []generalSubtree `asn1:"optional,tag:0"`
		Excluded  []generalSubtree `asn1:"optional,tag:1"`
	}
	if rest, err := asn1.Unmarshal(value, &sequence); err != nil || len(rest) > 0 {
		return nil, errors.New("engine: name constraints cannot be read")
	}
	constraints := nameConstraints{}
	for i, general := range slices.Concat(sequence.Permitted, sequence.Excluded) {
		tree := subtree{value: general.Base.Bytes}
		if general.Base.Tag == tagDirectory {
			name, ok := readName(general.Base.Bytes)
			if !ok {
				return nil, errors.New("engine: a directory name of name constraints cannot be read")
			}
			tree.directory = name
		}
		kind := constraints[general.Base.Tag]
		if kind == nil {
			kind = &subtrees{}
			constraints[general.Base.Tag] = kind
		}
		if i < len(sequence.Permitted) {
			kind.permitted = append(kind.permitted, tree)
		} else {
			kind.excluded = append(kind.excluded, tree)
		}
		kind.limited = kind.limited || general.Minimum != 0 || general.Maximum != -1
	}
	return constraints, nil
}

// problemOf returns which name of a certificate is not allowed, and why. It is empty if all
// names are allowed.
func (c nameConstraints) problemOf(subject, alternative []byte) string {
	names, problem := readingsOf(subject, alternative)
	if problem != "" {
		return problem
	}
	count := 0
	for _, kind := range c {
		count += len(kind.permitted) + len(kind.excluded)
	}
	if count*len(names) > maxComparisons {
		return fmt.Sprintf("it has too many names and constraints to compare, expected at most %d pairs", maxComparisons)
	}
	for _, name := range names {
		if problem := c.problem(name); problem != "" {
			return problem
		}
	}
	return ""
}

// problem returns why one name is not allowed. It is empty if the name is allowed.
func (c nameConstraints) problem(name reading) string {
	kind := c[name.tag]
	switch {
	case kind == nil:
		return ""
	case name.unreadable != "":
		return name.unreadable
	case kind.limited:
		return fmt.Sprintf("%s cannot be checked, because the constraints of its kind have a minimum or a maximum, expected neither", name.what)
	case len(kind.permitted) > 0 && !slices.ContainsFunc(kind.permitted, name.isWithin):
		return name.what + " is not permitted by any constraint"
	}
	if i := slices.IndexFunc(kind.excluded, name.touches); i >= 0 {
		return name.what + " is excluded by " + describeSubtree(name.tag, kind.excluded[i])
	}
	return ""
}

// describeSubtree returns a description of a constraint for a message.
func describeSubtree(tag int, tree subtree) string {
	switch tag {
	case tagDirectory:
		return "a constraint of directory names"
	case tagIP:
		half := len(tree.value) / 2
		address, _ := netip.AddrFromSlice(tree.value[:half])
		return fmt.Sprintf("the constraint %s with the mask %x", address, tree.value[half:])
	default:
		return "the constraint " + quote(string(tree.value), 128)
	}
}
