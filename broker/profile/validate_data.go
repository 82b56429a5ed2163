// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

func (v validator) encryptData(at place, e *EncryptData) {
	v.enum(at.field("EncryptAlg"), at, e.EncryptAlg, encryptAlgorithms)
	v.number(at.field("KeySize"), at, e.KeySize, encryptKeySizes, true)
	if e.NonceStrategy != "" || v.present(at.field("NonceStrategy")) {
		v.enum(at.field("NonceStrategy"), at, e.NonceStrategy, nonceStrategies)
	}
	v.number(at.field("TagLength"), at, e.TagLength, tagLengths, false)
	v.number(at.field("ShortTagLength"), at, e.ShortTagLength, shortTagLengths, false)
	v.keyIDs(at.field("KeyIds"), e.KeyIDs)
	for i := range e.KeyIDs {
		where := at.field("KeyIds").index(i)
		if e.KeyIDs[i].ID == AnyKeyID {
			continue // which has no pin either
		}
		if pin := where.field("SPKISHA256"); v.present(pin) || e.KeyIDs[i].SPKISHA256 != "" {
			v.add(pin, where, "an AES key has no public key that could be pinned, expected no SPKISHA256")
		}
	}
}

// number checks one of a fixed list of sizes in bits.
func (v validator) number(at, around place, found int, allowed []int, required bool) {
	names := make([]string, len(allowed))
	for i, n := range allowed {
		names[i] = fmt.Sprint(n)
	}
	want := "one of " + strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1] + " bits"
	switch {
	case v.failed[at] || v.failed[around]:
	case !v.present(at) && found == 0:
		if required {
			v.add(at, around, "is missing, expected %s", want)
		}
	case !slices.Contains(allowed, found):
		v.add(at, around, "found %d, expected %s", found, want)
	}
}

func (v validator) signData(at place, s *SignData) {
	mode := strings.ToLower(s.SigningMode)
	if s.SigningMode == "" && !v.present(at.field("SigningMode")) {
		mode = signingLegacy
	} else {
		v.enum(at.field("SigningMode"), at, s.SigningMode, signingModes)
	}
	v.signAlgorithm(at.field("SignAlg"), at, mode, s.SignAlg)
	v.signHash(at, s.SignAlg, s.HashAlg, dataHashAlgorithms)
	if s.SignatureFormat != "" || v.present(at.field("SignatureFormat")) {
		v.enum(at.field("SignatureFormat"), at, s.SignatureFormat, signatureFormats)
		v.cms(at, s)
	}
	v.keyConstraints(at.field("KeyConstraints"), s.KeyConstraints)
	v.usableKeys(at, s)
	v.keyIDs(at.field("KeyIds"), s.KeyIDs)
}

// cms refuses the format CMS where no call could ever get it.
func (v validator) cms(at place, s *SignData) {
	if !strings.EqualFold(s.SignatureFormat, signatureFormatNames[SignatureCMS]) || v.failed[at.field("SignAlg")] || v.failed[at.field("HashAlg")] {
		return
	}
	sign, hash := strings.ToLower(s.SignAlg), strings.ToLower(s.HashAlg)
	if (sign != "rsa" && sign != "ecdsa") || strings.HasPrefix(hash, "sha3-") {
		v.add(at.field("SignatureFormat"), at, "found \"CMS\", which needs SignAlg \"rsa\" or \"ecdsa\" with a HashAlg \"sha-256\", \"sha-384\" or \"sha-512\"")
	}
}

// usableKeys refuses constraints that leave the algorithm without any key. What
// is not listed is refused, so such a profile would refuse every call.
func (v validator) usableKeys(at place, s *SignData) {
	if v.failed[at.field("SignAlg")] {
		return
	}
	for part := range strings.SplitSeq(strings.ToLower(s.SignAlg), "+") {
		algorithm, limited := signingKeyAlgorithms[part]
		if !limited {
			continue
		}
		for name, sizes := range map[string]map[string]KeySize{"Subject": s.KeyConstraints.Subject, "Issuer": s.KeyConstraints.Issuer} {
			if _, listed := sizes[algorithm]; len(sizes) > 0 && !listed {
				where := at.field("KeyConstraints")
				v.add(where.field(name), where, "does not list %q, the keys of SignAlg %q, so that every key would be refused", algorithm, s.SignAlg)
			}
		}
	}
}

// signAlgorithm checks that the algorithm fits the mode: a classical one, a
// post-quantum one, or for a hybrid one of each joined by "+".
func (v validator) signAlgorithm(at, around place, mode, found string) {
	want := map[string]string{
		signingLegacy:      "one of " + list(classicalSignAlgorithms),
		signingPostQuantum: "one of " + list(postQuantumSignAlgorithms),
		signingHybrid:      "one of " + list(classicalSignAlgorithms) + " and one of " + list(postQuantumSignAlgorithms) + ", joined by +, such as \"ecdsa+ml-dsa-65\"",
	}[mode]
	fits := modeOf(strings.ToLower(found))
	switch {
	case want == "" || fits == mode: // of an unknown mode that is said elsewhere
	case fits != "":
		v.add(at, around, "found %s in mode %q, expected %s; %s is for SigningMode %q", excerpt(found), mode, want, excerpt(found), fits)
	case mode == signingLegacy:
		v.enum(at, around, found, classicalSignAlgorithms)
	case mode == signingPostQuantum:
		v.enum(at, around, found, postQuantumSignAlgorithms)
	case found == "":
		v.required(at, around, want)
	default:
		v.add(at, around, "found %s in mode %q, expected %s", excerpt(found), mode, want)
	}
}

// modeOf is the mode that an algorithm is for, empty if there is no such one.
func modeOf(algorithm string) string {
	classical, postQuantum, joined := strings.Cut(algorithm, "+")
	switch {
	case joined && slices.Contains(classicalSignAlgorithms, classical) && slices.Contains(postQuantumSignAlgorithms, postQuantum):
		return signingHybrid
	case slices.Contains(classicalSignAlgorithms, algorithm):
		return signingLegacy
	case slices.Contains(postQuantumSignAlgorithms, algorithm):
		return signingPostQuantum
	default:
		return ""
	}
}

// maxUserID is the largest user or group id; the one above means "none" to the
// kernel.
const maxUserID = math.MaxUint32 - 1

// callers checks who may use a profile. An empty restriction is refused: it
// reads as "nobody" and would act as "everybody".
func (v validator) callers(at place, c *Callers) {
	if c == nil {
		return
	}
	if !v.anyPresent(at, "Containers", "UIDs", "GIDs") && len(c.Containers)+len(c.UIDs)+len(c.GIDs) == 0 {
		v.add(at, at, "restricts nothing, expected at least one of %s; leave the field out to allow every caller", list([]string{"Containers", "UIDs", "GIDs"}))
	}
	containers := at.field("Containers")
	v.notEmpty(containers, len(c.Containers))
	for i, name := range c.Containers {
		if where := containers.index(i); !IsDNSLabel(name) {
			v.add(where, containers, "found %s, expected the name of a container: at most 63 lower-case letters, digits and inner hyphens", excerpt(name))
		}
	}
	v.ids(at.field("UIDs"), "user", c.UIDs)
	v.ids(at.field("GIDs"), "group", c.GIDs)
}

func (v validator) ids(at place, kind string, ids []int64) {
	v.notEmpty(at, len(ids))
	for i, id := range ids {
		if id < 0 || id > maxUserID {
			v.add(at.index(i), at, "found %d, expected a %s id from 0 to %d", id, kind, int64(maxUserID))
		}
	}
}

func (v validator) notEmpty(at place, length int) {
	if length == 0 && v.present(at) {
		v.add(at, at, "the list is empty, expected at least one value; leave the field out to allow every caller")
	}
}
