// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

var _ = compares("SignCertificate", (*comparison).certificate)

func (c *comparison) certificate(old, new side) {
	c.issuance(old.SignCertificate, new.SignCertificate)
	c.names(old.SignCertificate.SubjectAltNames, new.SignCertificate.SubjectAltNames, old.compiled.Certificate().Names())
	c.points(old.SignCertificate.CRLDistributionPoints, new.SignCertificate.CRLDistributionPoints, old.compiled.Certificate().DistributionPoints())
	c.keyIDs("API.SignCertificate.KeyIds", old.SignCertificate.KeyIDs, new.SignCertificate.KeyIDs)
}

// issuance compares the signatures of certificates, their keys and their extensions.
func (c *comparison) issuance(before, after *profile.SignCertificate) {
	const at = "API.SignCertificate."
	old, _ := components(before.SignAlg, before.HashAlg)
	new, _ := components(after.SignAlg, after.HashAlg)
	c.signing(at, "KeyConstraints.Issuer", old, new, limits{before: listed(before.KeyConstraints.Issuer), after: listed(after.KeyConstraints.Issuer)})
	if isSHA1(after.SKIHashAlg) && !isSHA1(before.SKIHashAlg) {
		c.add(at+"SKIHashAlg", before.SKIHashAlg, "sha-1", "key identifiers are made with SHA-1, they were made with %q", before.SKIHashAlg)
	}
	c.validity(at+"Validity.", before.Validity, after.Validity)
	c.keyList(at+"KeyConstraints.Subject", before.KeyConstraints.Subject, after.KeyConstraints.Subject)
	c.usages(at+"KeyUsage", before.KeyUsage, after.KeyUsage)
	c.usages(at+"ExtendedKeyUsage", before.ExtendedKeyUsage, after.ExtendedKeyUsage)
	c.basicConstraints(at+"BasicConstraints.", before.BasicConstraints, after.BasicConstraints)
	if after.AllowSHA1Requests && !before.AllowSHA1Requests {
		c.add(at+"AllowSHA1Requests", "false", "true", "certificate requests may be signed with SHA-1; the profile refused them")
	}
}

// listed returns limits that allow only the listed keys.
func listed(sizes map[string]keyrules.Size) keyrules.Limits {
	if sizes == nil {
		return keyrules.Limits{}
	}
	return sizes
}

// isSHA1 reports whether a SKIHashAlg is SHA-1. An absent one is SHA-1, too.
func isSHA1(name string) bool { return name == "" || strings.EqualFold(name, "sha-1") }

// validity compares the window in which a certificate may be valid.
func (c *comparison) validity(at string, before, after profile.Validity) {
	if duration(after.ValidNotBeforeOffset) < duration(before.ValidNotBeforeOffset) {
		c.add(at+"ValidNotBeforeOffset", before.ValidNotBeforeOffset, after.ValidNotBeforeOffset, "certificates may begin at %s from now, %s was the earliest", after.ValidNotBeforeOffset, before.ValidNotBeforeOffset)
	}
	if duration(after.ValidNotAfterOffset) > duration(before.ValidNotAfterOffset) {
		c.add(at+"ValidNotAfterOffset", before.ValidNotAfterOffset, after.ValidNotAfterOffset, "certificates may end at %s from now, %s was the latest", after.ValidNotAfterOffset, before.ValidNotAfterOffset)
	}
}

// duration parses a duration of a valid profile.
func duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic("downgrade: comparison of a profile that was not validated: " + err.Error())
	}
	return d
}

// usages compares lists of key usages. A certificate without the extension may
// be used for anything (RFC 5280, sections 4.2.1.3 and 4.2.1.12).
func (c *comparison) usages(field string, before, after []string) {
	switch {
	case len(before) == 0:
		return
	case len(after) == 0:
		c.add(field, strings.Join(before, ", "), "none", "certificates have no %s and may be used for anything, they were for %s", field[strings.LastIndex(field, ".")+1:], strings.Join(before, ", "))
		return
	}
	var added []string
	for _, usage := range after {
		if !slices.ContainsFunc(before, func(b string) bool { return sameUsage(b, usage) }) {
			added = append(added, usage)
		}
	}
	if len(added) > 0 {
		slices.Sort(added)
		c.add(field, strings.Join(before, ", "), strings.Join(after, ", "), "certificates are also for %s", strings.Join(slices.Compact(added), ", "))
	}
}

// sameUsage reports whether two names stand for the same bit (RFC 5280, section 4.2.1.3).
func sameUsage(a, b string) bool {
	newer := func(name string) string {
		if name == "nonRepudiation" {
			return "contentCommitment"
		}
		return name
	}
	return newer(a) == newer(b)
}

func (c *comparison) basicConstraints(at string, before, after *profile.BasicConstraints) {
	var none profile.BasicConstraints
	if before == nil {
		before = &none
	}
	if after == nil {
		after = &none
	}
	switch {
	case !after.CA:
	case !before.CA:
		c.add(at+"CA", "false", "true", "certificates are for certificate authorities, which may sign further ones")
	case before.PathLenConstraint == nil:
	case after.PathLenConstraint == nil:
		c.add(at+"PathLenConstraint", strconv.Itoa(*before.PathLenConstraint), "none", "any number of authorities may follow, %d could", *before.PathLenConstraint)
	case *after.PathLenConstraint > *before.PathLenConstraint:
		c.add(at+"PathLenConstraint", strconv.Itoa(*before.PathLenConstraint), strconv.Itoa(*after.PathLenConstraint), "%d authorities may follow, %d could", *after.PathLenConstraint, *before.PathLenConstraint)
	}
}
