// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/x509"
	"slices"
	"time"
)

// authorities is the content of the Secret. advance moves it from one state to the next. It
// does not use Kubernetes.
type authorities struct {
	purpose purpose

	// current is the authority that signs. It is nil only before the first call of
	// advance, and if the Secret was lost.
	current *authority

	// next is the authority that will sign next. The bundles already have it. It is nil most of
	// the time.
	next *authority

	// retired are the authorities that do not sign any more. They are trusted until
	// retiredUntil.
	retired      []*x509.Certificate
	retiredUntil time.Time
}

// advance moves to the state for the time now and reports whether anything changed.
// trusted reports whether all bundles have a certificate at this moment.
//
// Every served certificate stays verifiable, because of the order: a successor takes over
// only after it was trusted everywhere for settle, and its predecessor stays trusted for
// as long as a certificate that it signed can live.
func (a *authorities) advance(now time.Time, trusted func(*x509.Certificate) bool) (changed bool, err error) {
	if a.current != nil && !valid(a.current.certificate, now) {
		// One that is not valid yet was made while a clock was ahead. A server whose clock is
		// still ahead may use it.
		predecessor := a.current.certificate
		a.current, changed = nil, true
		a.retire(now, predecessor)
	}
	if a.next != nil && !valid(a.next.certificate, now) {
		a.next, changed = nil, true
	}
	if a.dropRetired(now) {
		changed = true
	}

	if a.current == nil {
		// There is no signing authority, so waiting for settle would only prolong the outage. A
		// certificate is served only once the bundles have its authority.
		a.current, a.next = a.next, nil
		changed = true
		if a.current == nil {
			if a.current, err = a.purpose.newAuthority(now); err != nil {
				return false, err
			}
		}
	}

	if a.next == nil && !now.Before(a.current.certificate.NotAfter.Add(-prepareBefore)) {
		if a.next, err = a.purpose.newAuthority(now); err != nil {
			return false, err
		}
		changed = true
	}

	if a.next != nil && !now.Before(a.next.made().Add(settle)) && trusted(a.next.certificate) {
		predecessor := a.current.certificate
		a.current, a.next = a.next, nil
		a.retire(now, predecessor)
		changed = true
	}
	return changed, nil
}

// retire keeps certificates trusted for as long as a serving certificate that they have signed
// can be valid. All retired certificates stay as long as the newest of them.
func (a *authorities) retire(now time.Time, certificates ...*x509.Certificate) {
	for _, certificate := range certificates {
		if expired(certificate, now) || contains(a.trusted(), certificate) {
			continue
		}
		a.retired = append(a.retired, certificate)
		a.retiredUntil = now.Add(a.purpose.retireAfter())
	}
}

// dropRetired removes the retired authorities after retiredUntil, and expired ones.
func (a *authorities) dropRetired(now time.Time) (changed bool) {
	before := len(a.retired)
	if !now.Before(a.retiredUntil) {
		a.retired = nil
	}
	a.retired = slices.DeleteFunc(a.retired, func(c *x509.Certificate) bool { return expired(c, now) })
	return len(a.retired) != before
}

// trusted returns the certificates for the bundles, the signing authority first.
func (a *authorities) trusted() []*x509.Certificate {
	var all []*x509.Certificate
	if a.current != nil {
		all = append(all, a.current.certificate)
	}
	if a.next != nil {
		all = append(all, a.next.certificate)
	}
	return append(all, a.retired...)
}

// deadline returns the time at which advance has to be called next.
func (a *authorities) deadline() time.Time {
	earliest := a.current.certificate.NotAfter.Add(-prepareBefore)
	if a.next != nil {
		earliest = a.next.made().Add(settle)
	}
	if len(a.retired) > 0 && a.retiredUntil.Before(earliest) {
		earliest = a.retiredUntil
	}
	return earliest
}

func expired(certificate *x509.Certificate, now time.Time) bool {
	return now.After(certificate.NotAfter)
}

// valid reports whether a certificate is neither expired nor not valid yet.
func valid(certificate *x509.Certificate, now time.Time) bool {
	return !now.Before(certificate.NotBefore) && !expired(certificate, now)
}

func contains(certificates []*x509.Certificate, wanted *x509.Certificate) bool {
	return slices.ContainsFunc(certificates, wanted.Equal)
}
