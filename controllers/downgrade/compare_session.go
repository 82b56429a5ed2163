// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

var _ = compares("Session", (*comparison).session)

func (c *comparison) session(old, changed side) {
	before, after := old.Session, changed.Session
	const at = "API.Session."
	listed := func(protocol string) bool {
		return slices.ContainsFunc(before.Protocols, func(was string) bool { return strings.EqualFold(was, protocol) })
	}
	// An added version that authenticates the broker is not weaker. An exception is a profile all of
	// whose versions resisted quantum computers: then an added version must resist them as well,
	// because recorded sessions could be decrypted later.
	resisted := !slices.ContainsFunc(before.Protocols, func(protocol string) bool { return !resistsQuantum(protocol) })
	added := slices.DeleteFunc(slices.Clone(after.Protocols), func(protocol string) bool {
		return listed(protocol) || isNative(protocol) && (!resisted || resistsQuantum(protocol))
	})
	if len(added) > 0 {
		c.add(at+"Protocols", strings.Join(before.Protocols, ", "), strings.Join(after.Protocols, ", "), "clients may speak %s, which the profile refused", strings.Join(added, ", "))
	}
	for _, name := range []struct{ field, was, is string }{
		{"KeyAgreementAlg", cmp.Or(before.KeyAgreementAlg, after.KeyAgreementAlg), cmp.Or(after.KeyAgreementAlg, before.KeyAgreementAlg)},
		{"EncryptAlg", before.EncryptAlg, after.EncryptAlg},
	} {
		if !strings.EqualFold(name.was, name.is) {
			c.add(at+name.field, name.was, name.is, "found %q instead of %q; the two can't be compared", name.is, name.was)
		}
	}
	c.sessionSignature(before, after)
	if was, is := cmp.Or(before.Store, "memory"), cmp.Or(after.Store, "memory"); !strings.EqualFold(was, is) && !strings.EqualFold(is, "memory") {
		c.add(at+"Store", was, is, "keys of sessions leave the memory of the broker")
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

// sessionSignature compares the signatures of the native versions. A profile has a signature if
// and only if it has a native version.
func (c *comparison) sessionSignature(before, after *profile.Session) {
	if before.SignAlg == "" || after.SignAlg == "" {
		return
	}
	const at = "API.Session."
	oldClassical, oldQuantum := components(before.SignAlg, before.HashAlg)
	newClassical, newQuantum := components(after.SignAlg, after.HashAlg)
	switch {
	case oldQuantum != 0 && newQuantum == 0:
		c.add(at+"SignAlg", before.SignAlg, after.SignAlg, "a quantum computer can forge signatures of %q, but could not forge signatures of %q", after.SignAlg, before.SignAlg)
	case oldQuantum != 0 && newQuantum != 0 && weaker(newQuantum, oldQuantum):
		c.add(at+"SignAlg", before.SignAlg, after.SignAlg, "%q is weaker than %q", newQuantum.String(), oldQuantum.String())
	case oldQuantum == 0 && newQuantum == 0:
		all := profile.SessionKeyLimits()
		c.signing(at, "KeyIds", oldClassical, newClassical, limits{before: all, after: all})
	}
	c.keyIDs(at+"KeyIds", before.KeyIDs, after.KeyIDs)
}

// isNative reports whether the broker signs its share in a protocol.
func isNative(protocol string) bool {
	version, known := algorithm.FindSession(protocol)
	return known && version.IsNative()
}

// resistsQuantum reports whether the key agreement of a protocol is made to resist quantum
// computers. Of a hybrid, an attacker has to break both halves.
func resistsQuantum(protocol string) bool {
	version, known := algorithm.FindSession(protocol)
	return known && slices.ContainsFunc(version.Primitives(), func(half []algorithm.Primitive) bool {
		return !slices.ContainsFunc(half, func(p algorithm.Primitive) bool { return p.Kind == algorithm.Classical })
	})
}

func (c *comparison) longer(field, sentence string, before, after time.Duration) {
	if after > before {
		c.add(field, before.String(), after.String(), sentence, after, before)
	}
}
