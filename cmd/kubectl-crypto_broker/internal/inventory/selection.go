// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// Selection are names of primitives, families and algorithms. A use matches if it has one of them.
// An empty Selection matches all uses.
type Selection []string

// NewSelection returns the selection of names as people write them: upper and lower case do not
// matter, and hyphens may be left out where no name becomes another.
func NewSelection(names []string) (Selection, error) {
	known := Names()
	var all Selection
	for _, name := range names {
		lower := strings.ToLower(strings.TrimSpace(name))
		i := slices.IndexFunc(known, func(k string) bool { return k == lower })
		if i < 0 {
			i = slices.IndexFunc(known, func(k string) bool { return strings.ReplaceAll(k, "-", "") == strings.ReplaceAll(lower, "-", "") })
		}
		switch {
		case i >= 0:
			all = append(all, known[i])
		case algorithm.IsRSAName(lower):
			all = append(all, lower)
		default:
			return nil, fmt.Errorf("found %q, expected one of %s", name, strings.Join(known, ", "))
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Names returns the names that a selection can have, except names of RSA keys of rare sizes.
func Names() []string {
	names := slices.Concat(algorithm.PrimitiveNames(), algorithm.Signatures(algorithm.Classical), algorithm.Signatures(algorithm.PostQuantum),
		algorithm.Ciphers(), algorithm.Streams(), algorithm.Wrappings(), algorithm.Sessions())
	slices.Sort(names)
	return slices.Compact(names)
}

// Matches reports whether the use has a name of the selection.
func (s Selection) Matches(u *Use) bool {
	return len(s) == 0 || slices.ContainsFunc(u.names(), func(name string) bool { return slices.Contains(s, name) })
}

// names returns all names by which a use is found.
func (u *Use) names() []string {
	names := slices.Clone(u.Primitives)
	for _, p := range u.Primitives {
		if family, size, is := cutLast(p); is && strings.Trim(size, "0123456789") == "" {
			names = append(names, family)
		}
	}
	for part := range strings.SplitSeq(u.Algorithm, "+") {
		sign, _, _ := strings.Cut(part, "-with-")
		names = append(names, sign)
	}
	for _, key := range u.Keys {
		names = append(names, strings.ToLower(key.Algorithm)) // the algorithm that a rewrapped key had
	}
	if u.Operation == profile.OpEncryptStream.String() || u.Operation == profile.OpDecryptStream.String() {
		names = append(names, algorithm.AES256GCMHKDF64KB.String())
	}
	return names
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '-')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
