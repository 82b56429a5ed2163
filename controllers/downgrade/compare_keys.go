// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

// limits are the limits of keys in the old and the new profile.
type limits struct{ before, after keyrules.Limits }

func (l limits) equal(other limits) bool {
	return maps.Equal(l.before, other.before) && maps.Equal(l.after, other.after)
}

// classical is a signature algorithm that is not post-quantum.
type classical struct {
	sign    algorithm.Signature
	hash    string
	written string // SignAlg as the profile has it
}

// keys returns the keys that the algorithm takes, as KeyConstraints name them.
func (a classical) keys() string { return a.sign.Key().Name }

// limited returns the strength of keys, or the strength of the digest if that is weaker.
func (a classical) limited(keys profile.Strength) profile.Strength {
	if digest := profile.DigestStrength(a.hash); a.sign.TakesDigest() && digest.Bits < keys.Bits {
		return digest
	}
	return keys
}

// signing compares algorithm, digest and keys of signatures that are made. Only keys that the
// algorithm takes count. Another kind of keys may replace the old kind if its weakest key is as
// strong, also together with the digest. The strength of a hybrid signature, which verdicts
// compares, does not show that.
func (c *comparison) signing(at, constraints string, before, after classical, keys limits) {
	old, had := keys.before.Range(before.keys())
	new, has := keys.after.Range(after.keys())
	switch {
	case !has: // nothing can be signed
	case before.keys() == after.keys():
		if after.sign.TakesDigest() {
			c.digest(at+"HashAlg", before.hash, after.hash)
		}
		c.keyRange(at+constraints, after.keys(), old, had, new)
	case !had:
		c.add(at+constraints+"."+after.keys(), "none", sizes(new), "%s keys may be used, there were none that could", after.keys())
	default:
		oldStrength, newStrength := profile.KeyStrength(before.keys(), old.MinKeySize), profile.KeyStrength(after.keys(), new.MinKeySize)
		if newStrength.Bits >= oldStrength.Bits {
			oldStrength, newStrength = before.limited(oldStrength), after.limited(newStrength)
		}
		if newStrength.Bits < oldStrength.Bits {
			c.add(at+"SignAlg", before.written, after.written, "%q has a strength of %s by %s, %q had %s by %s",
				after.written, bits(newStrength), newStrength.Limit, before.written, bits(oldStrength), oldStrength.Limit)
		}
	}
}

// verifying compares keys of signatures that are checked. Another kind of keys may replace the old
// kind if its weakest key is as strong.
func (c *comparison) verifying(field string, before, after classical, keys limits) {
	old, had := keys.before.Range(before.keys())
	new, has := keys.after.Range(after.keys())
	if !has {
		return
	}
	if before.keys() == after.keys() {
		c.keyRange(field, after.keys(), old, had, new)
		return
	}
	oldStrength, newStrength := profile.KeyStrength(before.keys(), old.MinKeySize), profile.KeyStrength(after.keys(), new.MinKeySize)
	if newStrength.Bits < oldStrength.Bits {
		c.add(field+"."+after.keys(), bits(oldStrength), bits(newStrength), "signatures of %s are accepted, which have a strength of %s; %s had %s",
			newStrength.Limit, bits(newStrength), oldStrength.Limit, bits(oldStrength))
	}
}

// keyRange compares the sizes of keys of one algorithm. A range with a higher minimum is not
// weaker.
func (c *comparison) keyRange(field, algorithm string, before keyrules.Size, had bool, after keyrules.Size) {
	at := field + "." + algorithm
	switch {
	case !had:
		c.add(at, "none", sizes(after), "%s keys may be used, which the profile refused", algorithm)
	case after.MinKeySize < before.MinKeySize:
		c.add(at+".MinKeySize", strconv.Itoa(before.MinKeySize), strconv.Itoa(after.MinKeySize), "%s keys of %d bits may be used, %d was the least", algorithm, after.MinKeySize, before.MinKeySize)
		if after.MaxKeySize <= before.MaxKeySize {
			return
		}
		fallthrough
	case after.MaxKeySize > before.MaxKeySize && after.MinKeySize <= before.MinKeySize:
		c.add(at+".MaxKeySize", strconv.Itoa(before.MaxKeySize), strconv.Itoa(after.MaxKeySize), "the range of %s keys is broader: it ends at %d bits, it ended at %d", algorithm, after.MaxKeySize, before.MaxKeySize)
	}
}

func sizes(s keyrules.Size) string { return fmt.Sprintf("%d to %d bits", s.MinKeySize, s.MaxKeySize) }

// keyList compares lists of key algorithms, all of which may be used. A new algorithm may replace
// a removed one if its weakest keys are as strong. Otherwise it is a weakening.
func (c *comparison) keyList(field string, before, after map[string]keyrules.Size) {
	weakest := func(list map[string]keyrules.Size, algorithm string) int {
		return profile.KeyStrength(algorithm, list[algorithm].MinKeySize).Bits
	}
	var gone []int
	var added []string
	for algorithm := range before {
		if _, both := after[algorithm]; !both {
			gone = append(gone, weakest(before, algorithm))
		}
	}
	for _, algorithm := range slices.Sorted(maps.Keys(after)) {
		if old, both := before[algorithm]; both {
			c.keyRange(field, algorithm, old, true, after[algorithm])
		} else {
			added = append(added, algorithm)
		}
	}
	slices.Sort(gone)
	slices.SortStableFunc(added, func(a, b string) int { return weakest(after, a) - weakest(after, b) })
	for i, algorithm := range added {
		if i < len(gone) && weakest(after, algorithm) >= gone[i] {
			continue
		}
		c.add(field+"."+algorithm, "none", sizes(after[algorithm]), "%s keys may be used, which the profile refused", algorithm)
	}
}

// keyIDs compares the keys that an operation may use. With a list these are the listed
// keys of the broker; without a list they are the keys that requests bring. Neither is
// stricter than the other, so a change from one to the other is weaker in both directions.
// [keyrules.AnyID] does not stand for keys of key providers.
func (c *comparison) keyIDs(field string, before, after []keyrules.ID) {
	switch {
	case len(before) == 0 && len(after) == 0:
		return
	case len(after) == 0:
		c.add(field, ids(before), "none", "requests may bring keys of their own, they could only name %s of the broker", ids(before))
		return
	case len(before) == 0:
		c.add(field, "none", ids(after), "%s of the broker may be used, none of the broker's keys could", ids(after))
		return
	}
	any := keyrules.AllowsAny(before)
	pins := map[string]string{}
	for _, key := range before {
		pins[key.ID] = strings.ToLower(key.SPKISHA256)
	}
	var added, unpinned []keyrules.ID
	for _, key := range after {
		switch pin, listed := pins[key.ID]; {
		case any && !keyrules.IsOfKeyProvider(key.ID):
		case !listed:
			added = append(added, key)
		case pin != "" && strings.ToLower(key.SPKISHA256) != pin:
			unpinned = append(unpinned, key)
		}
	}
	if len(added) > 0 {
		c.add(field, ids(before), ids(after), "%s may be used, only %s could", ids(added), ids(before))
	}
	if len(unpinned) > 0 {
		c.add(field+".SPKISHA256", "pinned", "pinned otherwise", "%s may be another public key than it was pinned to", ids(unpinned))
	}
}

// ids names the keys of a list.
func ids(keys []keyrules.ID) string {
	if keyrules.AllowsAny(keys) {
		return "any key"
	}
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = strconv.Quote(key.ID)
	}
	slices.Sort(names)
	return short(names)
}

// shown is the maximum number of values of a list that a sentence names.
const shown = 5

// short joins values. If there are many, it joins the first ones.
func short(values []string) string {
	if more := len(values) - shown; more > 0 {
		return strings.Join(values[:shown], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(values, ", ")
}
