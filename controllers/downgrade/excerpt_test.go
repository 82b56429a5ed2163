// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"fmt"
	"slices"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/callers"
	"github.com/google/go-cmp/cmp"
)

func TestAnExcerptSaysOfANameWhatTheWholeConfigMapSays(t *testing.T) {
	names := []string{
		"A", "AA", "A-", "true", "12", "-", "- Name: A", "it's", `"quoted"`, "a: b", "größer", "#", "*a", "a #b", "null", "~", "@", "Name", "? x",
	}
	plain := func(name string) Candidate { return of(hashing(name, "sha-512")) }
	withLines := func(name string) Candidate {
		c := large(name, 10)
		c.Profile.KMS.Config.(map[string]any)["text"] = "one\n- Name: A\n  API: {}\n  - Name: A\n"
		return c
	}
	newer := func(name string) Candidate {
		c := withLines(name)
		c.Profile.Callers = &callers.Lists{Containers: []string{"app", "- Name: A"}}
		return c
	}
	for sentence, make := range map[string]func(string) Candidate{
		"in the list form":                  plain,
		"in the list form, with many lines": withLines,
		"in the map form":                   newer,
	} {
		t.Run(sentence, func(t *testing.T) {
			for _, name := range names {
				var all []Candidate
				for _, n := range names {
					all = append(all, make(n))
				}
				without := slices.DeleteFunc(slices.Clone(all), func(c Candidate) bool { return c.Profile.Name == name })
				for when, state := range map[string]State{"served": serving(all), "removed": serving(all, without), "never served": serving(without)} {
					data := string(file(state.served))
					excerpt := NewFinder(name).Cut(data, state.Annotations())
					found, err := excerpt.Read()
					if err != nil {
						t.Fatal(err)
					}
					if n := len(found.served); n > 1 {
						t.Errorf("%q: the excerpt has %d profiles, expected none but this", name, n)
					}
					new := of(hashing(name, "shake-128"))
					if diff := cmp.Diff(fmt.Sprint(state.Judge([]Candidate{new}, 0).Withheld), fmt.Sprint(found.Judge([]Candidate{new}, 0).Withheld)); diff != "" {
						t.Errorf("%q, %s (-whole +excerpt):\n%s", name, when, diff)
					}
				}
			}
		})
	}
}

func TestWhatIsWrittenByOthersIsReadAsAWhole(t *testing.T) {
	for _, file := range []string{
		"- {Name: B}\n- Name: A\n  API: {HashData: {HashAlg: sha-512}}\n",
		"# a comment\n- Name: A\n  API: {HashData: {HashAlg: sha-512}}\n",
		"Profiles: [{Name: A, API: {HashData: {HashAlg: sha-512}}}]\n",
	} {
		state, err := NewFinder("A").Cut(file, nil).Read()
		if err != nil {
			t.Fatal(err)
		}
		if j := state.Judge([]Candidate{of(hashing("A", "sha-256"))}, 0); len(j.Withheld) != 1 {
			t.Errorf("not found in %q", file)
		}
	}
	if _, err := NewFinder("A").Cut("{", nil).Read(); err == nil {
		t.Error("a file that can't be read is no error")
	}
}
