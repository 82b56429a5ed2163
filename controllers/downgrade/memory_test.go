// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// large returns a profile of about this many bytes.
func large(name string, bytes int) Candidate {
	p := hashing(name, "sha3-512")
	p.KMS = &profile.KMS{Client: "none", Config: map[string]any{"text": strings.Repeat("x", bytes)}}
	return of(p)
}

func many(count, bytes int) []Candidate {
	all := make([]Candidate, count)
	for i := range all {
		all[i] = large(fmt.Sprintf("Profile-%d", i), bytes)
	}
	return all
}

// kept returns the State that a ConfigMap of this one gives back.
func kept(t *testing.T, s State) State {
	t.Helper()
	total := 0
	for _, value := range s.Annotations() {
		total += len(value)
	}
	if total > maxMemory {
		t.Fatalf("the memory takes %d bytes, expected %d at most", total, maxMemory)
	}
	data := ""
	if len(s.served) > 0 {
		data = string(file(s.served))
	}
	read, err := Read(data, s.Annotations(), render.Result{})
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestOfRemovedProfilesWithoutRoomOnlyTheirNamesHaveToBeAllowed(t *testing.T) {
	removed := many(40, 10_000)
	state := kept(t, serving(removed, nil))
	if len(state.past.forgotten) == 0 || len(state.past.removed) == 0 {
		t.Fatalf("%d profiles are forgotten and %d remembered, expected some of each", len(state.past.forgotten), len(state.past.removed))
	}
	var forgotten, remembered Candidate
	for _, c := range removed {
		if _, ok := state.past.removed[c.Profile.Name]; ok {
			remembered = c
		} else {
			forgotten = c
		}
	}
	changed := func(c Candidate) Candidate {
		c.Profile.API.HashData = &profile.HashData{HashAlg: "sha-512"} // as strong
		return c
	}
	ending := forgotten
	ending.Profile.Deprecation = &profile.Deprecation{Reason: "old"}
	for sentence, test := range map[string]struct {
		new    Candidate
		served bool
	}{
		"one that is remembered and comes as strong":        {changed(remembered), true},
		"one that is forgotten and comes as it was":         {forgotten, true},
		"one that is forgotten and comes as it was, to end": {ending, true},
		"one that is forgotten and comes in another way":    {changed(forgotten), false},
		"one that was never served":                         {of(hashing("New", "shake-128")), true},
	} {
		t.Run(sentence, func(t *testing.T) {
			if j := state.Judge([]Candidate{test.new}, 0); len(j.Served) == 1 != test.served {
				t.Errorf("found %+v", j)
			}
		})
	}
	j := state.Judge([]Candidate{changed(forgotten)}, 0)
	if len(j.Withheld) != 1 || !strings.Contains(j.Withheld[0].Withheld(), "may be weaker than one that was served before, and is not served. spec: a profile of this name was served before") {
		t.Fatalf("withheld is %+v", j.Withheld)
	}
	allowed := changed(forgotten)
	allowed.Allow = j.Withheld[0].Digest
	healed := kept(t, state.Judge([]Candidate{allowed}, 0).After)
	if _, still := healed.past.forgotten[markOf(forgotten.Profile.Name)]; still {
		t.Error("a name that was allowed is still forgotten")
	}
}

// Whoever may write profiles could fill the memory to have an old one forgotten.
func TestWithoutRoomForMarksEveryUnknownNameHasToBeAllowed(t *testing.T) {
	state := serving([]Candidate{of(hashing("A", "sha3-512"))}, many(maxMemory/markSize, 100), nil)
	state = kept(t, state)
	if !state.past.forgetful {
		t.Fatal("there is room for any number of removed profiles")
	}
	for sentence, c := range map[string]Candidate{
		"one that was forgotten and comes weaker": of(hashing("A", "sha-256")),
		"one that may have been served":           of(hashing("New", "sha3-512")),
	} {
		j := state.Judge([]Candidate{c}, 0)
		if len(j.Withheld) != 1 || len(j.Served) != 0 {
			t.Fatalf("%s is served: %+v", sentence, j)
		}
		c.Allow = j.Withheld[0].Digest
		if j := state.Judge([]Candidate{c}, 0); len(j.Allowed) != 1 {
			t.Errorf("%s can't be allowed: %+v", sentence, j)
		}
	}
}

// The bound tells work that grows with the profiles from work that grows with their
// square, which takes minutes.
func TestTwoThousandProfilesAreRemovedInAMoment(t *testing.T) {
	all := many(2000, 300)
	state := serving(all)
	begin := time.Now()
	after := kept(t, state.Judge(nil, 0).After)
	if took := time.Since(begin); took > 15*time.Second {
		t.Errorf("removing %d profiles took %s", len(all), took)
	}
	if after.past.forgetful || len(after.past.removed)+len(after.past.forgotten) != len(all) {
		t.Errorf("of %d removed profiles %d are remembered and the marks of %d", len(all), len(after.past.removed), len(after.past.forgotten))
	}
	if j := after.Judge(all, 0); len(j.Served) != len(all) || !j.After.IsEmpty() {
		t.Errorf("%d of %d profiles are served when they come back as they were", len(j.Served), len(all))
	}
}

func TestWhatDoesNotChangeIsNotRememberedAnew(t *testing.T) {
	all := many(10, 100)
	state := serving(all, all[1:])
	changed := append([]Candidate{large("Profile-1", 200)}, all[2:]...)
	if after := state.Judge(changed, 0).After; after.past != state.past {
		t.Error("the memory was made anew, though no profile went or came back")
	}
}

func TestHistoryThatIsCutOffIsAnError(t *testing.T) {
	_, err := Read("", map[string]string{v1alpha1.ProfilesHistoryAnnotation: `{"forgotten":"AAAA"}`}, render.Result{})
	if err == nil || !strings.HasSuffix(err.Error(), "forgotten has 3 bytes, expected 32 for each profile") {
		t.Errorf("found %v", err)
	}
}
