// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"cmp"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

var _ = compares("DataKeys", (*comparison).dataKeys)

func (c *comparison) dataKeys(old, changed side) {
	before, after := old.DataKeys, changed.DataKeys
	const at = "API.DataKeys."
	if c.wrapAlgorithms(at+"WrapAlgs", before, after); !c.says(at + "WrapAlgs") {
		c.firstAlgorithms(at+"WrapAlgs", before, after)
	}
	c.shorter(at+"KeySize", "the data key", before.KeySize, after.KeySize)
	// The values, the strictest first. Without a context, a wrapped data key can be replaced by
	// another one.
	values := []string{"required", "optional", "none"}
	was, is := keyContext(before), keyContext(after)
	if slices.Index(values, is) > slices.Index(values, was) {
		c.add(at+"Context", was, is, "a context of data keys is %q, it was %q, so a data key may be taken for another one", is, was)
	}
	c.keyIDs(at+"KeyIds", before.KeyIDs, after.KeyIDs)
}

// wrapAlgorithms finds algorithms that may wrap now and could not wrap before. A new algorithm is
// not weaker if it is as strong as a removed algorithm with the same kind of keys.
func (c *comparison) wrapAlgorithms(field string, before, after *profile.DataKeys) {
	gone := slices.DeleteFunc(wrappings(before), func(w algorithm.Wrapping) bool { return slices.Contains(wrappings(after), w) })
	var added []string
	for _, with := range wrappings(after) {
		if slices.Contains(wrappings(before), with) {
			continue
		}
		if i := slices.IndexFunc(gone, func(old algorithm.Wrapping) bool { return replaces(with, old) }); i >= 0 {
			gone = slices.Delete(gone, i, i+1)
			continue
		}
		added = append(added, with.String())
	}
	if len(added) > 0 {
		c.add(field, strings.Join(before.WrapAlgs, ", "), strings.Join(after.WrapAlgs, ", "), "data keys may be wrapped with %s, which the profile refused", strings.Join(added, ", "))
	}
}

// firstAlgorithms finds a kind of wrapping keys that wraps new data keys with a weaker algorithm
// than before. A key wraps with the first algorithm of the list that it has.
func (c *comparison) firstAlgorithms(field string, before, after *profile.DataKeys) {
	for _, with := range wrappings(after) {
		is, was := firstAlgorithm(after, with.Key()), firstAlgorithm(before, with.Key())
		if was.IsKnown() && is != was && !replaces(is, was) {
			c.add(field, strings.Join(before.WrapAlgs, ", "), strings.Join(after.WrapAlgs, ", "), "new data keys are wrapped with %s, they were wrapped with %s", is, was)
			return
		}
	}
}

// firstAlgorithm returns the algorithm with which a kind of keys wraps, or 0 if there is none.
func firstAlgorithm(d *profile.DataKeys, key algorithm.WrappingKey) algorithm.Wrapping {
	for _, with := range wrappings(d) {
		if with.Key() == key {
			return with
		}
	}
	return 0
}

// replaces reports whether an algorithm is not weaker than the old algorithm that it replaces.
func replaces(with, old algorithm.Wrapping) bool {
	bits, _ := with.Strength(with.KeySizes()[0])
	oldBits, _ := old.Strength(old.KeySizes()[0])
	return with.Key() == old.Key() && bits >= oldBits && with.Approval() <= old.Approval() && (with.BindsContext() || !old.BindsContext())
}

func wrappings(d *profile.DataKeys) (all []algorithm.Wrapping) {
	for _, name := range d.WrapAlgs {
		if with, known := algorithm.FindWrapping(name); known {
			all = append(all, with)
		}
	}
	return all
}

func keyContext(d *profile.DataKeys) string { return cmp.Or(strings.ToLower(d.Context), "optional") }
