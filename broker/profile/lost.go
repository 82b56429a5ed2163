// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Lost returns what the profile offers and another one in its place does not: operations,
// algorithms, keys, formats and callers. Each is a phrase such as "SignData: RSA keys of 2048
// bits, expected 3072 to 4096 bits". It asks after for the effect on the extremes that the
// profile offers, such as the smallest and the largest key.
func (c *Compiled) Lost(after *Compiled) []string {
	var lost []string
	add := func(phrase string) {
		if !slices.Contains(lost, phrase) {
			lost = append(lost, phrase)
		}
	}
	for _, a := range c.assessments {
		if a.Refused {
			continue
		}
		for _, u := range c.extremes(a) {
			if effect, _ := c.effect(u); effect == Refused {
				continue // such as a format that the algorithm does not have
			}
			_, why := after.effect(u)
			switch {
			case why == "":
			case strings.HasPrefix(why, a.Operation):
				add(why)
			default:
				add(a.Operation + ": " + why)
			}
		}
	}
	for _, who := range c.callers.lost(after.callers) {
		add(who)
	}
	return lost
}

// extremes returns uses that an operation allows. If all of them have no effect, no use has
// one.
func (c *Compiled) extremes(a Assessment) (all []Use) {
	switch a.Operation {
	case OpHashData.String():
		return []Use{{Operation: OpHashData, Algorithm: c.hash.Algorithm().String()}}
	case OpEncryptData.String(), OpDecryptData.String():
		u := Use{Operation: OpEncryptData, Algorithm: c.cipher.Algorithm(), TagSize: uint8(c.cipher.TagSize()), GivenNonce: !c.cipher.RandomNonce()}
		if a.Operation == OpDecryptData.String() {
			u.Operation, u.GivenNonce = OpDecryptData, false
		}
		for _, id := range c.cipher.keys.sources() {
			u.Keys[0] = UsedKey{Algorithm: AESKey, Bits: 8 * c.cipher.KeySize(), ID: id}
			all = append(all, u)
		}
		return all
	case OpSignCertificate.String():
		return c.certificate.extremes()
	case OpSignData.String():
		return c.signature.extremes(OpSignData, c.signature.Signs())
	case OpVerifyData.String():
		return c.signature.extremes(OpVerifyData, c.signature.Checks())
	case OpInitSession.String(), OpOpenRequest.String(), OpSealReply.String(), OpCloseSession.String(), OpRekeySession.String():
		op, _ := FindOperation(a.Operation)
		return c.session.extremes(op)
	default:
		op, _ := FindOperation(a.Operation)
		return c.dataKeys.extremes(op)
	}
}

func (s *SignaturePolicy) extremes(op Operation, limits KeyLimits) (all []Use) {
	type asked struct {
		format SignatureFormat
		given  bool
	}
	formats := []asked{{SignatureRAW, true}, {SignatureDER, true}, {SignaturePEM, true}, {SignatureCMS, true}}
	if s.fixed {
		formats = []asked{{s.format, true}, {s.format, false}}
	}
	for _, format := range formats {
		for _, id := range s.keys.sources() {
			for _, smallest := range []bool{true, false} {
				u := Use{Operation: op, Algorithm: s.name, Format: format.format, GivenFormat: format.given}
				for i, component := range s.components {
					u.Keys[i] = limits.extreme(component.Algorithm.Key().Name, smallest)
					u.Keys[i].ID = id
				}
				all = append(all, u)
			}
		}
	}
	return all
}

func (p *CertificatePolicy) extremes() (all []Use) {
	for _, id := range p.keys.sources() {
		for _, subject := range slices.Sorted(maps.Keys(p.subject)) {
			for _, smallest := range []bool{true, false} {
				u := Use{Operation: OpSignCertificate, Algorithm: p.algorithm, SHA1Request: p.sha1Requests}
				u.Keys = [2]UsedKey{p.issuer.extreme(p.IssuerKey(), smallest), p.subject.extreme(subject, smallest)}
				u.Keys[0].ID = id
				all = append(all, u)
			}
		}
	}
	return all
}

// extreme returns the smallest or the largest key of an algorithm.
func (l KeyLimits) extreme(name string, smallest bool) UsedKey {
	size, _ := l.Range(name) // 0 bits if the algorithm has one size
	if smallest {
		return UsedKey{Algorithm: name, Bits: size.MinKeySize}
	}
	return UsedKey{Algorithm: name, Bits: size.MaxKeySize}
}

// sources returns the ids of the keys that calls may use, one of them empty for a key of the
// request.
func (p *KeyPolicy) sources() []string {
	if p.ByReference() {
		return p.IDs()
	}
	return []string{""}
}

// lost returns the callers that the policy allows and another one does not.
func (p *CallerPolicy) lost(after *CallerPolicy) (lost []string) {
	if after == nil {
		return nil
	}
	if p == nil {
		p = &CallerPolicy{}
	}
	for _, list := range []struct {
		what          string
		before, after []string
		all, limited  bool
	}{
		{"container", slices.Sorted(maps.Keys(p.containers)), slices.Sorted(maps.Keys(after.containers)), p.containers == nil, after.containers != nil},
		{"user", numbers(p.uids), numbers(after.uids), p.uids == nil, after.uids != nil},
		{"group", numbers(p.gids), numbers(after.gids), p.gids == nil, after.gids != nil},
	} {
		switch {
		case !list.limited:
		case list.all:
			lost = append(lost, fmt.Sprintf("callers beside the %ss %s", list.what, strings.Join(list.after, ", ")))
		default:
			for _, name := range list.before {
				if !slices.Contains(list.after, name) {
					lost = append(lost, "the "+list.what+" "+name)
				}
			}
		}
	}
	return lost
}

func numbers(ids map[uint32]struct{}) (texts []string) {
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		texts = append(texts, fmt.Sprint(id))
	}
	return texts
}
