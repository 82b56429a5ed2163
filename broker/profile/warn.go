// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

// Warnings returns warnings about values in served profiles that can never succeed, that have no
// effect, or that have another effect than with older brokers. Examples are key sizes that no key
// has, and tag lengths that have no effect. Warnings have the form of problems and are sorted by
// position. They take no profile out of service, because released brokers serve such profiles as
// well. The caller must not change them.
func (s *Set) Warnings() Problems { return s.warnings }

// warnings returns the warnings about valid profiles.
func warnings(r *yamlfile.Report, doc *Document) Problems {
	found := yamlfile.NewReport(r.File)
	found.Ranked, found.Positions, found.Names = r.Ranked, r.Positions, r.Names
	w := warner{found}
	for i := range doc.Profiles {
		if !r.Invalid[i] {
			w.profile(yamlfile.Item(i), &doc.Profiles[i], managerOf(&doc.Profiles[i], doc))
		}
	}
	return found.Finish()
}

// warner adds warnings about valid profiles.
type warner struct{ *yamlfile.Report }

func (w warner) profile(at yamlfile.Place, p *Profile, manager *KMS) {
	api := at.Field("API")
	for _, row := range sections {
		if s := row.of(&p.API); s != nil {
			s.warn(w, api.Field(row.Name), p, manager)
		}
	}
}

// nearest returns at if the file has this place, else around.
func (w warner) nearest(at, around yamlfile.Place) yamlfile.Place {
	if w.Present(at) {
		return at
	}
	return around
}

// curveSizes are the sizes in bits of the curves P-224 to P-521.
var curveSizes = []int{224, 256, 384, 521}

// curves warns of ranges that contain no curve.
func (w warner) curves(at yamlfile.Place, constraints keyrules.Constraints) {
	for name, sizes := range map[string]map[string]keyrules.Size{"Subject": constraints.Subject, "Issuer": constraints.Issuer} {
		where := at.Field("KeyConstraints").Field(name)
		if size, listed := sizes["ECDSA"]; listed && !slices.ContainsFunc(curveSizes, size.Includes) {
			w.Add(where.Field("ECDSA"), where, "allows %d to %d bits, which no curve has, so that every ECDSA key is refused; curves have 224, 256, 384 and 521 bits", size.MinKeySize, size.MaxKeySize)
		}
	}
}

// external warns of lists of keys in an external key manager. Brokers refuse all calls of such an
// operation.
func (w warner) external(at yamlfile.Place, keys []keyrules.ID, manager *KMS) {
	if manager == nil || len(keys) == 0 {
		return
	}
	w.Add(at.Field("KeyIds"), at, "are keys of the external key manager %s (KMS.Client), which brokers of this version have no access to, so that every call is refused", yamlfile.Excerpt(manager.Client))
}

// unlisted warns of operations without KeyIds. In older brokers they may use every key of the
// broker, and in this broker none. It does not warn of profiles in the released format, whose
// requests have always brought their keys, nor of profiles with a key manager.
func (w warner) unlisted(at yamlfile.Place, keys []keyrules.ID, p *Profile, manager *KMS) {
	if manager != nil || len(keys) > 0 || p.FormatVersion() == 0 {
		return
	}
	w.Add(at.Field("KeyIds"), at, "is missing, so requests bring their keys and cannot name keys of the broker, as older brokers allow; list the keys to allow, or %q alone for all keys", keyrules.AnyID)
}
