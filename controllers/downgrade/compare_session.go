// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var _ = compares("Session", (*comparison).session)

func (c *comparison) session(old, changed side) {
	before, after := old.Session, changed.Session
	const at = "API.Session."
	listed := func(protocol string) bool {
		return slices.ContainsFunc(before.Protocols, func(was string) bool { return strings.EqualFold(was, protocol) })
	}
	if added := slices.DeleteFunc(slices.Clone(after.Protocols), listed); len(added) > 0 {
		c.add(at+"Protocols", strings.Join(before.Protocols, ", "), strings.Join(after.Protocols, ", "), "clients may speak %s, which the profile refused", strings.Join(added, ", "))
	}
	for _, name := range []struct{ field, was, is string }{
		{"KeyAgreementAlg", before.KeyAgreementAlg, after.KeyAgreementAlg},
		{"EncryptAlg", before.EncryptAlg, after.EncryptAlg},
		{"Store", cmp.Or(before.Store, "memory"), cmp.Or(after.Store, "memory")},
	} {
		if !strings.EqualFold(name.was, name.is) {
			c.add(at+name.field, name.was, name.is, "found %q in the place of %q, which it can't be compared with", name.is, name.was)
		}
	}
	shortest, longest := before.Lifetimes()
	shortestNow, longestNow := after.Lifetimes()
	c.longer(at+"MinLifetime", "sessions live for at least %s, it was %s", shortest, shortestNow)
	c.longer(at+"MaxLifetime", "sessions live for up to %s, it was %s", longest, longestNow)
	c.longer(at+"ClockWindow", "requests may be %s away from the clock, it was %s, so a stolen one can be used for longer", before.Window(), after.Window())
	if was, is := before.Messages(), after.Messages(); is > was {
		c.add(at+"MaxMessages", strconv.Itoa(was), strconv.Itoa(is), "a key encrypts up to %d messages in each direction, it was %d", is, was)
	}
}

func (c *comparison) longer(field, sentence string, before, after time.Duration) {
	if after > before {
		c.add(field, before.String(), after.String(), sentence, after, before)
	}
}
