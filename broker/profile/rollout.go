// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// Rollout limits a profile to some of the brokers. The others still serve the profile of the same
// name without Rollout. A file with a Rollout has FormatVersion 2, so that brokers which do not
// know it keep the set that they have.
type Rollout struct {
	// Below is the number of RolloutPlaces that the profile has reached, from 0 to all. A broker
	// serves the profile if its RolloutPlace is lower.
	Below int64 `yaml:"Below"`
	// Digest identifies the change, so a broker counts the calls of each rollout of the name
	// separately. It has at most maxDigestLength bytes, and brokers use it for nothing else.
	Digest string `yaml:"Digest,omitempty"`
}

// maxDigestLength is the longest Rollout.Digest, in bytes.
const maxDigestLength = 128

// RolloutPlaces is the number of places.
const RolloutPlaces = 1 << 48

// RolloutPlace returns the place of a broker in the rollouts of a profile, from 0 to
// RolloutPlaces-1. It depends only on the two names, so a broker keeps its place after a restart.
// Places are spread evenly over the brokers, and independently for each profile.
func RolloutPlace(instance, profile string) int64 {
	sum := sha256.Sum256([]byte(instance + "\x00" + profile))
	return int64(binary.BigEndian.Uint64(sum[:8]) >> 16)
}

// Instance names the broker for rollouts. A broker without a name serves no profile with
// Rollout, unless all places are below.
func Instance(name string) CompileOption {
	return func(o *compileOptions) { o.instance = name }
}

// reaches reports whether the rollout reaches a broker.
func (r *Rollout) reaches(instance, profile string) bool {
	place := int64(RolloutPlaces - 1)
	if instance != "" {
		place = RolloutPlace(instance, profile)
	}
	return place < r.Below
}

// Side says which of two profiles of the same name a broker serves.
type Side struct {
	// Profile is the name of both profiles.
	Profile string
	// Digest is the Digest of the Rollout.
	Digest string
	// New reports whether the broker serves the profile with Rollout.
	New bool
	// Refused reports whether the profile with Rollout has reached the broker, and is invalid
	// there. Then the broker serves the other profile.
	Refused bool
}

// Rollouts returns the sides that the broker is on, in the order of the file. The caller
// must not change them.
func (s *Set) Rollouts() []Side { return s.sides }

// sides returns the side of each profile that is rolled out. A profile with Rollout that is
// invalid reaches no broker, and the profile without Rollout stays.
func sides(r *yamlfile.Report, doc *Document, instance string) []Side {
	var all []Side
	for i := range doc.Profiles {
		if p := &doc.Profiles[i]; p.Rollout != nil {
			reached := p.Rollout.reaches(instance, p.Name)
			all = append(all, Side{p.Name, p.Rollout.Digest, reached && !r.Invalid[i], reached && r.Invalid[i]})
		}
	}
	return all
}

func (v validator) rollout(at yamlfile.Place, r *Rollout) {
	if r == nil {
		return
	}
	if r.Below < 0 || r.Below > RolloutPlaces {
		v.Add(at.Field("Below"), at, "found %d, expected a number from 0 to %d", r.Below, int64(RolloutPlaces))
	}
	v.Text(at.Field("Digest"), r.Digest, maxDigestLength)
}

// alone refuses a profile with Rollout if no profile without Rollout has the same name.
func (v validator) alone(profiles []Profile, first map[nameAndSide]int) {
	for i := range profiles {
		p := &profiles[i]
		if _, both := first[nameAndSide{p.Name, false}]; p.Rollout != nil && p.Name != "" && !both {
			at := yamlfile.Item(i)
			v.Add(at.Field("Rollout"), at, "is for a profile that takes the place of another one, and no other profile has the name %s", yamlfile.Excerpt(p.Name))
		}
	}
}

// serves reports whether a valid profile is on the side of the broker.
func (s *Set) serves(p *Profile) bool {
	for _, side := range s.sides {
		if side.Profile == p.Name {
			return side.New == (p.Rollout != nil)
		}
	}
	return true
}
