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

// kept returns the State that is read back from the ConfigMap of this State.
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
	if len(state.past.forgotten.order) == 0 || len(state.past.removed) == 0 {
		t.Fatalf("%d profiles are forgotten and %d remembered, expected some of each", len(state.past.forgotten.order), len(state.past.removed))
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
	if _, still := healed.past.forgotten.contents[markOf(forgotten.Profile.Name)]; still {
		t.Error("a name that was allowed is still forgotten")
	}
}

// Authors of profiles can fill the memory, either to make the operator forget an old profile, or because each of their builds has
// its own profile.
func TestWithoutRoomForMarksOnlyForgottenNamesHaveToBeAllowed(t *testing.T) {
	var state State
	for batch := range 4 {
		var builds []Candidate
		for i := range 1500 {
			builds = append(builds, of(hashing(fmt.Sprintf("Build-%d-%d", batch, i), "sha-512")))
		}
		state = kept(t, state.Judge(builds, 0).After)
	}
	state = kept(t, state.Judge(nil, 0).After)
	served := func(state State, p profile.Profile) bool { return len(state.Judge([]Candidate{of(p)}, 0).Served) == 1 }

	refused := 0
	for i := range 1000 {
		if !served(state, hashing(fmt.Sprint("New-", i), "sha-256")) {
			refused++
		}
	}
	if refused > 10 {
		t.Errorf("of 1,000 names that were never served, %d have to be allowed", refused)
	}
	forgotten := ""
	for batch := range 4 {
		for i := 0; i < 1500; i += 20 {
			name := fmt.Sprintf("Build-%d-%d", batch, i)
			if served(state, hashing(name, "sha-256")) {
				t.Fatalf("%s is served with less strength than it had", name)
			}
			if !state.past.has(name) {
				forgotten = name
			}
		}
	}

	weak := of(hashing(forgotten, "sha-256"))
	j := state.Judge([]Candidate{weak}, 0)
	if len(j.Withheld) != 1 || !strings.Contains(j.Withheld[0].Withheld(), "may have been served before and is not remembered, because too many were removed from this namespace") {
		t.Fatalf("withheld is %+v", j.Withheld)
	}
	weak.Allow = j.Withheld[0].Digest
	state = kept(t, state.Judge([]Candidate{weak}, 0).After)
	state = kept(t, state.Judge(nil, 0).After)
	if !served(state, weak.Profile) {
		t.Error("a name that was allowed is not like any other: what was allowed can't come back")
	}
	if served(state, hashing(forgotten, "shake-128")) {
		t.Error("a name that was allowed is not like any other: it is served with still less strength")
	}
}

// An operator from before the filter does not say which names it forgot. If such a version is installed again, every unknown name
// may be one of them.
func TestWhatDoesNotKnowTheFilterTakesEveryUnknownNameForAForgottenOne(t *testing.T) {
	_, err := Read("", map[string]string{v1alpha1.ProfilesHistoryAnnotation: `{"forgetful":true,"unmarked":"AAAA"}`}, render.Result{})
	if err == nil || !strings.HasSuffix(err.Error(), "unmarked has 3 bytes, expected 32768") {
		t.Errorf("found %v", err)
	}
	before, err := Read("", map[string]string{v1alpha1.ProfilesHistoryAnnotation: `{"forgetful":true}`}, render.Result{})
	if err != nil {
		t.Fatal(err)
	}
	full := kept(t, serving(many(6000, 10), nil))
	if j := before.Judge([]Candidate{of(hashing("New", "sha3-512"))}, 0); len(j.Withheld) != 1 {
		t.Error("a name is served that an earlier operator may have forgotten")
	}
	if history := full.Annotations()[v1alpha1.ProfilesHistoryAnnotation]; !strings.Contains(history, `"forgetful":true,"unmarked":"`) {
		t.Errorf("an earlier operator would not know that names are forgotten: %.100s", history)
	}
}

// The bound tells work that grows with the profiles from work that grows with their
// square, which takes minutes.
func TestTwoThousandProfilesAreRemovedInAMoment(t *testing.T) {
	all := many(2000, 300)
	state := serving(all)
	begin := time.Now()
	after := kept(t, state.Judge(nil, 0).After)
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("removing %d profiles took %s", len(all), took)
	}
	if after.past.unmarked != nil || len(after.past.removed)+len(after.past.forgotten.order) != len(all) {
		t.Errorf("of %d removed profiles %d are remembered and the marks of %d", len(all), len(after.past.removed), len(after.past.forgotten.order))
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
