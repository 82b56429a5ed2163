// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/callers"
)

func (c *comparison) settings(before, after *profile.Settings) {
	library := func(s *profile.Settings) string {
		if s == nil {
			return "native"
		}
		return cmp.Or(strings.ToLower(s.CryptoLibrary), "native")
	}
	if old, new := library(before), library(after); new != old {
		c.add("Settings.CryptoLibrary", old, new, "another library computes: %q instead of %q", new, old)
	}
}

// keyManager counts any other key manager as weaker, because the same id stands for another key
// there, and its owner may have the keys.
func (c *comparison) keyManager(before, after *profile.KMS) {
	var none profile.KMS
	if before == nil {
		before = &none
	}
	if after == nil {
		after = &none
	}
	named := func(client string) string {
		if client == "" {
			return "the broker itself"
		}
		return "key manager " + strconv.Quote(client)
	}
	if after.Client != before.Client {
		c.add("KMS.Client", before.Client, after.Client, "keys come from %s, they came from %s", named(after.Client), named(before.Client))
	}
	if !sameValues(before.Config, after.Config) {
		c.add("KMS.Config", "as before", "changed", "the key manager is reached with other settings, so keys may come from elsewhere")
	}
	if !sameValues(before.Cache, after.Cache) {
		c.add("KMS.Cache", "as before", "changed", "keys are kept with other settings, maybe for longer")
	}
}

// sameValues compares free-form values by their encoding. It first handles profiles without such
// values, because most have none and the encoding would take a sixth of a comparison.
func sameValues(before, after any) bool {
	if before == nil && after == nil {
		return true
	}
	written := func(values any) []byte {
		return Canonical(profile.Profile{KMS: &profile.KMS{Config: values}})
	}
	return bytes.Equal(written(before), written(after))
}

// callers compares each list, because a caller must be in each of them. An absent list does not
// restrict.
func (c *comparison) callers(before, after *callers.Lists) {
	if before == nil {
		return
	}
	if after == nil {
		after = &callers.Lists{}
	}
	callersOf(c, "Callers.Containers", "container", before.Containers, after.Containers, strconv.Quote)
	id := func(id int64) string { return strconv.FormatInt(id, 10) }
	callersOf(c, "Callers.UIDs", "user", before.UIDs, after.UIDs, id)
	callersOf(c, "Callers.GIDs", "group", before.GIDs, after.GIDs, id)
}

func callersOf[T cmp.Ordered](c *comparison, field, kind string, before, after []T, text func(T) string) {
	list := func(values []T) string {
		var texts []string
		for _, value := range slices.Sorted(slices.Values(values)) {
			texts = append(texts, text(value))
		}
		return short(texts)
	}
	if len(before) == 0 {
		return
	}
	if len(after) == 0 {
		c.add(field, list(before), "any", "callers of any %s may use the profile, only %s could", kind, list(before))
		return
	}
	added := slices.DeleteFunc(slices.Clone(after), func(value T) bool { return slices.Contains(before, value) })
	if len(added) > 0 {
		c.add(field, list(before), list(after), "callers of %s %s may use the profile, only %s could", kind, list(added), list(before))
	}
}

func (c *comparison) audit(before, after *profile.Audit) {
	none := profile.Audit{Level: "none"}
	if before == nil {
		before = &none
	}
	if after == nil {
		after = &none
	}
	levels := []string{"none", "sampled", "sensitive", "all"}
	old, new := strings.ToLower(before.Level), strings.ToLower(after.Level)
	if slices.Index(levels, new) < slices.Index(levels, old) {
		c.add("Audit.Level", old, new, "the calls that are recorded are %q, they were %q", new, old)
	}
	if before.Required && !after.Required {
		c.add("Audit.Required", "true", "false", "a call that can't be recorded is answered, it was refused")
	}
}
