// SPDX-License-Identifier: Apache-2.0

package keyrules

import (
	"fmt"
	"maps"
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// Constraints limits key algorithms and sizes. Keys of algorithms that are not listed are
// refused.
type Constraints struct {
	Subject map[string]Size `yaml:"Subject,omitempty"`
	Issuer  map[string]Size `yaml:"Issuer,omitempty"`
}

// Size is an inclusive range in bits.
type Size struct {
	MinKeySize int `yaml:"MinKeySize"`
	MaxKeySize int `yaml:"MaxKeySize"`
}

// Includes reports whether the range has a size.
func (s Size) Includes(bits int) bool { return s.MinKeySize <= bits && bits <= s.MaxKeySize }

// Format returns the version of the profile format that the algorithms of the keys need.
func (k Constraints) Format() algorithm.Format {
	newest := algorithm.Format0
	for _, sizes := range []map[string]Size{k.Subject, k.Issuer} {
		for name := range sizes {
			newest = max(newest, algorithm.KeyFormat(name))
		}
	}
	return newest
}

// Check adds what is wrong with the constraints to a report.
func (k Constraints) Check(r *yamlfile.Report, at yamlfile.Place) {
	checkSizes(r, at.Field("Subject"), k.Subject)
	checkSizes(r, at.Field("Issuer"), k.Issuer)
}

func checkSizes(r *yamlfile.Report, at yamlfile.Place, sizes map[string]Size) {
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		where, size := at.Field(name), sizes[name]
		key, known := algorithm.FindKey(name)
		if !known || !key.IsListed() {
			listed := algorithm.ListedKeyNames()
			r.Add(where, at, "unknown key algorithm %s, expected one of %s%s", yamlfile.Excerpt(name), yamlfile.List(listed), yamlfile.DidYouMean(name, listed))
			continue
		}
		low := checkSize(r, where.Field("MinKeySize"), where, size.MinKeySize, key.MinSize, key.MaxSize)
		high := checkSize(r, where.Field("MaxKeySize"), where, size.MaxKeySize, key.MinSize, key.MaxSize)
		if low && high && size.MinKeySize > size.MaxKeySize {
			r.Add(where.Field("MinKeySize"), where, "found %d, expected at most MaxKeySize, which is %d", size.MinKeySize, size.MaxKeySize)
		}
	}
}

// checkSize reports whether a size is given and within the bounds of its algorithm.
func checkSize(r *yamlfile.Report, at, around yamlfile.Place, bits, lowest, highest int) bool {
	switch {
	case r.Failed[at] || r.Failed[around]:
		return false
	case !r.Present(at):
		r.Add(at, around, "is missing, expected a size in bits from %d to %d", lowest, highest)
		return false
	case bits < lowest || bits > highest:
		r.Add(at, around, "found %d, expected a size in bits from %d to %d", bits, lowest, highest)
		return false
	}
	return true
}

// Limits maps key algorithms ("RSA", "ECDSA", "Ed25519") to the allowed sizes. If it is
// nil, a key needs a security strength of 112 bits, which NIST SP 800-131A Rer. 2 demands of
// every signature. ML-DSA is not in it, because the algorithm of the profile fixes its size.
type Limits map[string]Size

// DefaultLimits returns the limits of SignData without Constraints: all keys with a
// security strength of 112 bits. given reports whether requests bring the keys.
func DefaultLimits(given bool) Limits {
	limits := Limits{}
	for _, key := range algorithm.ListedKeys() {
		limits[key.Name] = Size{MinKeySize: key.DefaultMinSize, MaxKeySize: key.MaxSize}
	}
	if given {
		limits[algorithm.RSAKey] = Size{MinKeySize: limits[algorithm.RSAKey].MinKeySize, MaxKeySize: algorithm.MaxGivenRSASize}
	}
	return limits
}

// LargestGivenRSA returns the size in bits of the largest RSA key that is read from a request. It
// is not 0 even if the limits do not list RSA. A key of a usual size is still read, so that the
// error can describe it.
func (l Limits) LargestGivenRSA() int {
	if size, listed := l[algorithm.RSAKey]; listed {
		return size.MaxKeySize
	}
	return algorithm.MaxGivenRSASize
}

// Range returns the sizes in bits that a key of the algorithm may have. It reports false if
// the algorithm is not allowed.
func (l Limits) Range(name string) (Size, bool) {
	if l == nil {
		l = DefaultLimits(false)
	}
	size, ok := l[name]
	return size, ok
}

// Allow reports whether a key of this algorithm and size in bits is allowed.
func (l Limits) Allow(name string, bits int) bool {
	size, listed := l.Range(name)
	return listed && size.Includes(bits)
}

// NewLimits returns the limits of a list, else of the other list, else [DefaultLimits].
func NewLimits(own, other map[string]Size, given bool) Limits {
	if own == nil {
		own = other
	}
	if own == nil {
		return DefaultLimits(given)
	}
	return maps.Clone(own)
}

// OnlyListed returns limits that allow only the listed keys. An absent list allows none,
// unlike nil Limits.
func OnlyListed(sizes map[string]Size) Limits {
	if sizes == nil {
		return Limits{}
	}
	return maps.Clone(sizes)
}

// Refusal returns why the limits do not allow a key of an algorithm with a size in bits, or an empty
// text. A key of 0 bits is allowed: its algorithm has one size.
func (l Limits) Refusal(name string, bits int) string {
	size, listed := l.Range(name)
	switch {
	case bits == 0:
		return ""
	case !listed:
		return name + " keys"
	case l.Allow(name, bits):
		return ""
	case size.MinKeySize == size.MaxKeySize:
		return fmt.Sprintf("%s keys of %d bits, expected %d bits", name, bits, size.MinKeySize)
	default:
		return fmt.Sprintf("%s keys of %d bits, expected %d to %d bits", name, bits, size.MinKeySize, size.MaxKeySize)
	}
}
