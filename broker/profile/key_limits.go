// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// KeyConstraints limits key algorithms and sizes. Keys of algorithms that are not listed are
// refused.
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

// format returns the version of the profile format that the algorithms of the keys need.
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

// KeyLimits maps key algorithms ("RSA", "ECDSA", "Ed25519") to the allowed sizes. If it is
// nil, a key needs a security strength of 112 bits, which NIST SP 800-131A Rev. 2 demands of
// every signature. ML-DSA is not in it, because the algorithm of the profile fixes its size.
type KeyLimits map[string]KeySize

// DefaultKeyLimits returns the limits of SignData without KeyConstraints: all keys with a
// security strength of 112 bits. given reports whether requests bring the keys.
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

// LargestGivenRSA returns the size in bits of the largest RSA key that is read from a request. It
// is not 0 even if the limits do not list RSA. A key of a usual size is still read, so that the
// error can describe it.
func (l KeyLimits) LargestGivenRSA() int {
	if size, listed := l[algorithm.RSAKey]; listed {
		return size.MaxKeySize
	}
	return algorithm.MaxGivenRSASize
}

// Range returns the sizes in bits that a key of the algorithm may have. It reports false if
// the algorithm is not allowed.
func (l KeyLimits) Range(name string) (KeySize, bool) {
	if l == nil {
		l = DefaultKeyLimits(false)
	}
	size, ok := l[name]
	return size, ok
}

// Allow reports whether a key of this algorithm and size in bits is allowed.
func (l KeyLimits) Allow(name string, bits int) bool {
	size, listed := l.Range(name)
	return listed && size.includes(bits)
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

// listedKeys returns limits that allow only the listed keys. An absent list allows none,
// unlike nil KeyLimits.
func listedKeys(sizes map[string]KeySize) KeyLimits {
	if sizes == nil {
		return KeyLimits{}
	}
	return maps.Clone(sizes)
}

// refusal returns why the limits do not allow a key, or an empty text.
func (l KeyLimits) refusal(key UsedKey) string {
	size, listed := l.Range(key.Algorithm)
	switch {
	case key.Bits == 0: // the algorithm has one size
		return ""
	case !listed:
		return key.Algorithm + " keys"
	case l.Allow(key.Algorithm, key.Bits):
		return ""
	case size.MinKeySize == size.MaxKeySize:
		return fmt.Sprintf("%s keys of %d bits, expected %d bits", key.Algorithm, key.Bits, size.MinKeySize)
	default:
		return fmt.Sprintf("%s keys of %d bits, expected %d to %d bits", key.Algorithm, key.Bits, size.MinKeySize, size.MaxKeySize)
	}
}

// extreme returns the smallest or the largest key of an algorithm.
func (l KeyLimits) extreme(name string, smallest bool) UsedKey {
	size, _ := l.Range(name) // 0 bits if the algorithm has one size
	if smallest {
		return UsedKey{Algorithm: name, Bits: size.MinKeySize}
	}
	return UsedKey{Algorithm: name, Bits: size.MaxKeySize}
}
