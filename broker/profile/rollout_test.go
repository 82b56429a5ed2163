// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"strings"
	"testing"
)

// twoSides is a file in which the profile Payments is rolled out to a number of places.
func twoSides(below int64) []byte {
	return fmt.Appendf(nil, `FormatVersion: 2
Profiles:
  - Name: Payments
    API: {HashData: {HashAlg: sha-256}}
  - Name: Payments
    API: {HashData: {HashAlg: sha-512}}
    Rollout: {Below: %d}
  - Name: Other
    API: {HashData: {HashAlg: sha-384}}
`, below)
}

// digestOf returns the digest that a broker serves under the name Payments.
func digestOf(t *testing.T, file []byte, options ...CompileOption) string {
	t.Helper()
	set, problems := Compile("f", file, options...)
	if set == nil {
		t.Fatal(problems)
	}
	p, ok := set.Lookup("Payments")
	if !ok {
		return ""
	}
	return p.Hash().Algorithm().String()
}

func TestARolloutReachesAsManyBrokersAsItsPlacesSay(t *testing.T) {
	const brokers = 1000
	for _, percent := range []int64{0, 10, 50, 100} {
		reached := 0
		for i := range brokers {
			if digestOf(t, twoSides(RolloutPlaces*percent/100), Instance(fmt.Sprint("pod-", i))) == "sha-512" {
				reached++
			}
		}
		if want := int(percent) * brokers / 100; reached < want-50 || reached > want+50 {
			t.Errorf("%d %%: it reached %d of %d brokers", percent, reached, brokers)
		}
	}
}

func TestABrokerIsReachedOnceThePlaceOfItsNameIs(t *testing.T) {
	place := RolloutPlace("7d0c4a1e", "Payments")
	for sentence, test := range map[string]struct {
		below   int64
		options []CompileOption
		want    string
	}{
		"not before its place":        {place, []CompileOption{Instance("7d0c4a1e")}, "sha-256"},
		"from its place on":           {place + 1, []CompileOption{Instance("7d0c4a1e")}, "sha-512"},
		"without a name at the end":   {RolloutPlaces, nil, "sha-512"},
		"without a name not before":   {RolloutPlaces - 1, nil, "sha-256"},
		"with a name at the end, too": {RolloutPlaces, []CompileOption{Instance("7d0c4a1e")}, "sha-512"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := digestOf(t, twoSides(test.below), test.options...); got != test.want {
				t.Errorf("it serves %s, want %s", got, test.want)
			}
		})
	}
}

func TestANewProfileThatABrokerRefusesLeavesTheOldOneInService(t *testing.T) {
	file := []byte(strings.Replace(string(twoSides(RolloutPlaces)), "sha-512", "sha-1024", 1))
	set, problems := Compile("f", file, Instance("7d0c4a1e"))
	if set == nil || len(problems) != 1 {
		t.Fatal(problems)
	}
	p, ok := set.Lookup("Payments")
	if !ok || p.Hash().Algorithm().String() != "sha-256" {
		t.Error("the old profile is not served")
	}
	if set.Rejected() != 1 {
		t.Errorf("%d profiles are rejected, want 1", set.Rejected())
	}
	if _, refused := set.Refused("Payments"); refused {
		t.Error("the name is refused, although it is served")
	}
	if sides := set.Rollouts(); len(sides) != 1 || sides[0] != (Side{Profile: "Payments", Refused: true}) {
		t.Errorf("sides %v, want that Payments refuses the new one", sides)
	}
}

func TestARolloutIsRefused(t *testing.T) {
	for sentence, test := range map[string]struct{ from, to, problem string }{
		"without a profile to take the place of": {"- Name: Payments\n    API: {HashData: {HashAlg: sha-256}}", "- Name: Else\n    API: {HashData: {HashAlg: sha-256}}", "no other profile has the name"},
		"of more places than there are":          {"Below: 5", "Below: 281474976710657", "expected a number from 0 to 281474976710656"},
		"of a negative number of places":         {"Below: 5", "Below: -1", "expected a number from 0 to 281474976710656"},
		"with a digest that is too long":         {"Below: 5", "Below: 5, Digest: " + strings.Repeat("a", 129), "at most 128"},
		"twice":                                  {"Name: Other", "Rollout: {Below: 7}\n    Name: Payments", "is taken by the profile on line"},
	} {
		t.Run(sentence, func(t *testing.T) {
			file := strings.Replace(string(twoSides(5)), test.from, test.to, 1)
			_, problems := Compile("f", []byte(file))
			if len(problems) == 0 || !strings.Contains(problems[0].Message, test.problem) {
				t.Errorf("problems %v, want one with %q", problems, test.problem)
			}
		})
	}
}

func TestAFileWithARolloutNeedsBrokersThatKnowIt(t *testing.T) {
	doc, problems := Parse("f", twoSides(5))
	if doc == nil {
		t.Fatal(problems)
	}
	data, err := Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(data), "FormatVersion: 2\n") {
		t.Errorf("the file begins with %q, want FormatVersion 2", data[:20])
	}
	if again, _ := Parse("f", data); again == nil || again.Profiles[1].Rollout == nil || again.Profiles[1].Rollout.Below != 5 {
		t.Error("the rollout is lost when the file is read again")
	}
}
