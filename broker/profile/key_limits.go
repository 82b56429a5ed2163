// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"maps"
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// KeyConstraints limits key algorithms and sizes; an algorithm that is not
// listed is refused.
type KeyConstraints struct {
	Subject map[string]KeySize `yaml:"Subject,omitempty"`
	Issuer  map[string]KeySize `yaml:"Issuer,omitempty"`
}

// KeySize is an inclusive range in bits.
type KeySize struct {
	MinKeySize int `yaml:"MinKeySize"`
	MaxKeySize int `yaml:"MaxKeySize"`
}

func (s KeySize) includes(bits int) bool { return s.MinKeySize <= bits && bits <= s.MaxKeySize }

// format is the version of the profile format that the algorithms of the keys need.
func (k KeyConstraints) format() algorithm.Format {
	newest := algorithm.Format0
	for _, sizes := range []map[string]KeySize{k.Subject, k.Issuer} {
		for name := range sizes {
			newest = max(newest, algorithm.KeyFormat(name))
		}
	}
	return newest
}

func (v validator) keyConstraints(at yamlfile.Place, k KeyConstraints) {
	v.keySizes(at.Field("Subject"), k.Subject)
	v.keySizes(at.Field("Issuer"), k.Issuer)
}

func (v validator) keySizes(at yamlfile.Place, sizes map[string]KeySize) {
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		where, size := at.Field(name), sizes[name]
		key, known := algorithm.FindKey(name)
		if !known || !key.IsListed() {
			listed := algorithm.ListedKeyNames()
			v.Add(where, at, "unknown key algorithm %s, expected one of %s%s", yamlfile.Excerpt(name), yamlfile.List(listed), yamlfile.DidYouMean(name, listed))
			continue
		}
		low := v.keySize(where.Field("MinKeySize"), where, size.MinKeySize, key.MinSize, key.MaxSize)
		high := v.keySize(where.Field("MaxKeySize"), where, size.MaxKeySize, key.MinSize, key.MaxSize)
		if low && high && size.MinKeySize > size.MaxKeySize {
			v.Add(where.Field("MinKeySize"), where, "found %d, expected at most MaxKeySize, which is %d", size.MinKeySize, size.MaxKeySize)
		}
	}
}

func (v validator) keySize(at, around yamlfile.Place, bits, lowest, highest int) bool {
	switch {
	case v.Failed[at] || v.Failed[around]:
		return false
	case !v.Present(at):
		v.Add(at, around, "is missing, expected a size in bits from %d to %d", lowest, highest)
		return false
	case bits < lowest || bits > highest:
		v.Add(at, around, "found %d, expected a size in bits from %d to %d", bits, lowest, highest)
		return false
	}
	return true
}

// KeyLimits maps key algorithms ("RSA", "ECDSA", "Ed25519") to the sizes
// allowed. Where it is nil, a key needs the 112 bits of security strength that
// NIST SP 800-131A Rev. 2 demands of every signature. ML-DSA is not in it, since
// the algorithm of the profile fixes the size.
type KeyLimits map[string]KeySize

// DefaultKeyLimits are those of SignData where its KeyConstraints list nothing: all
// keys with 112 bits of security strength. given is whether requests bring the
// keys.
func DefaultKeyLimits(given bool) KeyLimits {
	limits := KeyLimits{}
	for _, key := range algorithm.ListedKeys() {
		limits[key.Name] = KeySize{MinKeySize: key.DefaultMinSize, MaxKeySize: key.MaxSize}
	}
	if given {
		limits[algorithm.RSAKey] = KeySize{MinKeySize: limits[algorithm.RSAKey].MinKeySize, MaxKeySize: algorithm.MaxGivenRSASize}
	}
	return limits
}

// LargestGivenRSA is the size in bits of the largest RSA key that a request may
// bring. Where the limits do not list RSA at all, a key of a usual size is still
// read, so that its sender learns that.
func (l KeyLimits) LargestGivenRSA() int {
	if size, listed := l[algorithm.RSAKey]; listed {
		return size.MaxKeySize
	}
	return algorithm.MaxGivenRSASize
}

// Range returns the sizes in bits that a key of the algorithm may have, both
// ends included; false where it may not be used at all.
func (l KeyLimits) Range(name string) (KeySize, bool) {
	if l == nil {
		l = DefaultKeyLimits(false)
	}
	size, ok := l[name]
	return size, ok
}

func keyLimits(own, other map[string]KeySize, given bool) KeyLimits {
	if own == nil {
		own = other
	}
	if own == nil {
		return DefaultKeyLimits(given)
	}
	return maps.Clone(own)
}

// listedKeys allows what is listed and nothing else, so that an empty list does
// not fall back to the default of KeyLimits.
func listedKeys(sizes map[string]KeySize) KeyLimits {
	if sizes == nil {
		return KeyLimits{}
	}
	return maps.Clone(sizes)
}
