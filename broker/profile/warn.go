// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"slices"
	"strings"
)

// Warnings are about profiles that are served although something in them can
// never succeed or has no effect, such as keys that no key can be, records that
// nobody writes or a length that tags do not have, or does something else than
// with brokers before. They have the form of problems, sorted by position, and
// take nothing out of service, since released brokers serve such profiles as well.
// The caller must not change them.
func (s *Set) Warnings() Problems { return s.warnings }

// warnings looks for them in the profiles that are valid.
func warnings(r *report, doc *Document) Problems {
	found := newReport(r.file)
	found.ranked, found.positions, found.names = r.ranked, r.positions, r.names
	w := warner{found}
	for i := range doc.Profiles {
		if !r.invalid[i] {
			w.profile(place{i, ""}, &doc.Profiles[i], managerOf(&doc.Profiles[i], doc))
		}
	}
	return found.finish()
}

// warner finds what a valid profile says in vain.
type warner struct{ *report }

func (w warner) profile(at place, p *Profile, manager *KMS) {
	api := at.field("API")
	for _, row := range sections {
		if s := row.of(&p.API); s != nil {
			s.warn(w, api.field(row.Name), p, manager)
		}
	}
	switch {
	case p.Audit == nil:
	case p.Audit.Required:
		w.add(at.field("Audit").field("Required"), at, "is true, but brokers of this version write no audit records, so that every call of the profile is refused; leave it out or set it to false")
	case !strings.EqualFold(p.Audit.Level, "none"):
		w.add(at.field("Audit").field("Level"), at, "is %s, but brokers of this version write no audit records, so that no call of the profile is recorded", excerpt(p.Audit.Level))
	}
}

// nearest is the first of the places that the file has.
func (w warner) nearest(at, around place) place {
	if w.present(at) {
		return at
	}
	return around
}

// curveSizes are those of the curves P-224 to P-521 in bits.
var curveSizes = []int{224, 256, 384, 521}

// curves warns of ranges that no curve is in.
func (w warner) curves(at place, constraints KeyConstraints) {
	for name, sizes := range map[string]map[string]KeySize{"Subject": constraints.Subject, "Issuer": constraints.Issuer} {
		where := at.field("KeyConstraints").field(name)
		if size, listed := sizes["ECDSA"]; listed && !slices.ContainsFunc(curveSizes, size.includes) {
			w.add(where.field("ECDSA"), where, "allows %d to %d bits, which no curve has, so that every ECDSA key is refused; curves have 224, 256, 384 and 521 bits", size.MinKeySize, size.MaxKeySize)
		}
	}
}

// external warns of lists of keys that are with a key manager. An operation with
// such a list takes no others.
func (w warner) external(at place, keys []KeyID, manager *KMS) {
	if manager == nil || len(keys) == 0 {
		return
	}
	w.add(at.field("KeyIds"), at, "are keys of the external key manager %s (KMS.Client), which brokers of this version have no access to, so that every call is refused", excerpt(manager.Client))
}

// unlisted warns of operations that could use every key of the broker by the
// rules of before, and use none now. It leaves alone profiles that released
// brokers know, whose requests bring their keys, and keys of a key manager, which
// never were there.
func (w warner) unlisted(at place, keys []KeyID, p *Profile, manager *KMS) {
	if manager != nil || len(keys) > 0 || p.FormatVersion() == 0 {
		return
	}
	w.add(at.field("KeyIds"), at, "is missing, so that requests bring their keys and cannot name one of the broker, as they could with brokers before; list those to allow, or %q alone for all", AnyKeyID)
}
