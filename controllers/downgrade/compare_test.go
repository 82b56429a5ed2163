// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
	"github.com/google/go-cmp/cmp"
)

// weakenings compares two profiles once.
func weakenings(before, after profile.Profile) []Weakening {
	return compare(before, after, func() (*profile.Compiled, error) { return compiled(after) })
}

func TestAProfileIsWeakerWith(t *testing.T) {
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			before, after := test.profiles(t)
			found := weakenings(before, after)
			sentences := map[string]string{}
			for _, w := range found {
				if _, twice := sentences[w.Field]; twice {
					t.Errorf("the field %q is there twice: %v", w.Field, found)
				}
				sentences[w.Field] = w.Sentence
			}
			if weaker, whole := test.weaker[""]; whole {
				if !strings.HasPrefix(sentences[""], weaker) || len(found) != 1 {
					t.Errorf("found %v, expected %q", found, weaker)
				}
				return
			}
			if len(test.weaker)+len(sentences) == 0 {
				return
			}
			if diff := cmp.Diff(test.weaker, sentences); diff != "" {
				t.Errorf("weaker (-want +found):\n%s", diff)
			}
			for range 5 {
				if diff := cmp.Diff(found, weakenings(before, after)); diff != "" {
					t.Fatalf("another order the next time:\n%s", diff)
				}
			}
		})
	}
}

// neutral are the fields whose changes never make a profile weaker, and why.
var neutral = map[string]string{
	"FormatVersion":                     "says which fields a file may have, and is derived from those it has",
	"Settings.CryptoLibrary of a file":  "the operator renders none for a whole file",
	"KMS of a file":                     "the operator renders none for a whole file",
	"Name":                              "profiles of one name are compared",
	"Settings.CryptoLibrary":            "has one value so far; compared for when it has two",
	"API.EncryptData.EncryptAlg":        "has one value so far; compared for when it has two",
	"API.EncryptData.TagLength":         "has no effect",
	"API.SignData.SignatureFormat":      "how a signature is written does not change who can forge it",
	"API.SignCertificate.KeyIds.Id":     "judged as a list",
	"API.EncryptData.KeyIds.Id":         "judged as a list",
	"API.EncryptData.KeyIds.SPKISHA256": "a secret key has no public key to be pinned to",
	"API.SignData.KeyIds.Id":            "judged as a list",
	"API.DataKeys.KeyIds.Id":            "judged as a list",
	"API.Session.KeyIds.Id":             "judged as a list",
	"API.Session.KeyAgreementAlg":       "has one value so far; compared for when it has two",
	"API.Session.EncryptAlg":            "has one value so far; compared for when it has two",
	"Deprecation.ReplacedBy":            "an announcement",
	"Deprecation.DeprecatedSince":       "an announcement",
	"Deprecation.RemoveAfter":           "an announcement: brokers serve the profile until it is deleted",
	"Deprecation.Reason":                "an announcement",
	"Rollout.Below":                     "the profile was judged when its rollout began",
	"Rollout.Digest":                    "the profile was judged when its rollout began",
}

func TestEveryFieldOfAProfileIsCompared(t *testing.T) {
	said := map[string]bool{}
	algorithm := regexp.MustCompile(`\.(RSA|ECDSA|Ed25519)\b`)
	for _, test := range cases {
		for field := range test.weaker {
			said[algorithm.ReplaceAllString(field, "")] = true
		}
	}
	fields := leaves(reflect.TypeFor[profile.Profile](), "")
	for _, field := range fields {
		if _, isNeutral := neutral[field]; !isNeutral && !said[field] {
			t.Errorf("%s: no comparison says that a change of it makes a profile weaker, and it is not among those that never do", field)
		}
	}
	for field := range neutral {
		if !slices.Contains(fields, field) && field != "FormatVersion" && !strings.HasSuffix(field, " of a file") {
			t.Errorf("%s: no profile has it", field)
		}
	}
	if diff := cmp.Diff([]string{"FormatVersion", "Settings", "KMS", "Profiles"}, fieldsOf(reflect.TypeFor[profile.Document]())); diff != "" {
		t.Errorf("a file has other fields than those that are thought of here (-want +found):\n%s", diff)
	}
}

// leaves returns the paths of all values in a type, without indices and keys.
func leaves(of reflect.Type, path string) []string {
	switch of.Kind() {
	case reflect.Pointer:
		return leaves(of.Elem(), path)
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Struct {
			return leaves(of.Elem(), path)
		}
		return []string{path}
	case reflect.Map:
		if of.Elem().Kind() == reflect.Struct {
			return leaves(of.Elem(), path)
		}
		return []string{path}
	case reflect.Struct:
		var all []string
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			all = append(all, leaves(field.Type, strings.TrimPrefix(path+"."+name, "."))...)
		}
		return all
	default:
		return []string{path}
	}
}

func fieldsOf(of reflect.Type) []string {
	var names []string
	for field := range of.Fields() {
		names = append(names, field.Name)
	}
	return names
}

func TestAWeakeningNamesTheFieldAsResourcesDo(t *testing.T) {
	before, after := parse(t, complete), parse(t, complete)
	subject(&after)["RSA"] = keyrules.Size{MinKeySize: 2048, MaxKeySize: 4096}
	found := weakenings(before, after)
	if want := "spec.api.signCertificate.keyConstraints.subject.rsa.minKeySize: RSA keys of 2048 bits may be used, 3072 was the least"; len(found) != 1 || found[0].String() != want {
		t.Errorf("found %v, expected %q", found, want)
	}
}

// Even if a comparison of single fields misses something, no operation as a whole may get worse unnoticed.
func TestNoLossOfStrengthOrApprovalGoesUnnoticed(t *testing.T) {
	type judged struct {
		profile.Profile
		assessments []profile.Assessment
	}
	var all []judged
	for _, sentence := range slices.Sorted(maps.Keys(cases)) {
		before, after := cases[sentence].profiles(t)
		for _, p := range []profile.Profile{before, after} {
			if c, err := compiled(p); err == nil {
				all = append(all, judged{p, c.Assessments()})
			}
		}
	}
	lost := 0
	for i, before := range all {
		for j, after := range all {
			if (i*7+j)%19 != 0 || !isWorse(before.assessments, after.assessments) { // to compare all pairs takes long
				continue
			}
			lost++
			if len(weakenings(before.Profile, after.Profile)) == 0 {
				t.Errorf("nothing is weaker in\n%s\nthan in\n%s", Canonical(after.Profile), Canonical(before.Profile))
			}
		}
	}
	if lost < 50 {
		t.Errorf("%d pairs lose strength or approval, too few to tell", lost)
	}
}

// isWorse reports whether an operation came, lost strength or is not approved any
// more.
func isWorse(before, after []profile.Assessment) bool {
	return slices.ContainsFunc(after, func(new profile.Assessment) bool {
		i := slices.IndexFunc(before, func(old profile.Assessment) bool { return old.Operation == new.Operation })
		return i < 0 || new.Strength.Bits < before[i].Strength.Bits || before[i].FIPS.Approved() && !new.FIPS.Approved()
	})
}
