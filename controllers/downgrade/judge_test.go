// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

func hashing(name, algorithm string) profile.Profile {
	return profile.Profile{Name: name, API: profile.API{HashData: &profile.HashData{HashAlg: algorithm}}}
}

// of returns a candidate whose source is a CryptoProfile of the namespace shop.
func of(p profile.Profile) Candidate {
	return Candidate{Profile: p, Source: Source{KindNamespaced, "shop", strings.ToLower(p.Name)}}
}

// serving returns the State after these lists of profiles were served, one after the other.
func serving(lists ...[]Candidate) State {
	var s State
	for _, list := range lists {
		s = s.Judge(list, 0).After
	}
	return s
}

func algorithms(profiles []profile.Profile) string {
	var all []string
	for _, p := range profiles {
		all = append(all, p.Name+" "+p.API.HashData.HashAlg)
	}
	return strings.Join(all, ", ")
}

func TestWhatBecomesOfProfiles(t *testing.T) {
	strong, equal, weak := of(hashing("A", "sha3-512")), of(hashing("A", "sha-512")), of(hashing("A", "sha-256"))
	other, otherWeak := of(hashing("B", "sha-384")), of(hashing("B", "shake-128"))
	fromCluster := weak
	fromCluster.Source = Source{KindCluster, "", "policy"}
	none := []Candidate{}
	for sentence, test := range map[string]struct {
		before   State
		new      []Candidate
		minimum  int
		served   string
		withheld int
		short    int
	}{
		"the first of a name is not compared":                       {new: []Candidate{weak}, served: "A sha-256"},
		"one of another name is not compared":                       {before: serving([]Candidate{strong}), new: []Candidate{strong, otherWeak}, served: "A sha3-512, B shake-128"},
		"one that is as strong is served":                           {before: serving([]Candidate{strong}), new: []Candidate{equal}, served: "A sha-512"},
		"a weaker one is withheld, and the old one stays":           {before: serving([]Candidate{strong}), new: []Candidate{weak}, served: "A sha3-512", withheld: 1},
		"a weaker one from another object is withheld":              {before: serving([]Candidate{strong}), new: []Candidate{fromCluster}, served: "A sha3-512", withheld: 1},
		"what changes beside a weaker one is served":                {before: serving([]Candidate{strong}), new: []Candidate{weak, other}, served: "A sha3-512, B sha-384", withheld: 1},
		"what goes beside a weaker one goes":                        {before: serving([]Candidate{strong, other}), new: []Candidate{weak}, served: "A sha3-512", withheld: 1},
		"one that was removed is not served when it comes weaker":   {before: serving([]Candidate{strong}, none), new: []Candidate{weak}, withheld: 1},
		"nor after it was removed long ago":                         {before: serving([]Candidate{strong}, none, []Candidate{other}, none), new: []Candidate{weak}, withheld: 1},
		"one that was removed is served when it comes as strong":    {before: serving([]Candidate{strong}, none), new: []Candidate{equal}, served: "A sha-512"},
		"the one served last counts, not the strongest of all":      {before: serving([]Candidate{weak}, none, []Candidate{strong}, none), new: []Candidate{weak}, withheld: 1},
		"a withheld one that goes takes the old one along":          {before: serving([]Candidate{strong}, []Candidate{weak}), new: none},
		"and leaves what was served to be compared with":            {before: serving([]Candidate{strong}, []Candidate{weak}, none), new: []Candidate{weak}, withheld: 1},
		"a profile above the minimum is served":                     {new: []Candidate{other}, minimum: 192, served: "B sha-384"},
		"a profile below the minimum is not":                        {new: []Candidate{other}, minimum: 256, short: 1},
		"a profile below the minimum leaves one above it":           {before: serving([]Candidate{strong}), new: []Candidate{weak}, minimum: 192, served: "A sha3-512", short: 1},
		"a profile that was served goes when the minimum is higher": {before: serving([]Candidate{other}), new: []Candidate{other}, minimum: 256, short: 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			j := test.before.Judge(test.new, test.minimum)
			if found := algorithms(j.Served); found != test.served {
				t.Errorf("%q is served, expected %q", found, test.served)
			}
			if len(j.Withheld) != test.withheld || len(j.Short) != test.short || len(j.Allowed) > 0 {
				t.Errorf("found %+v", j)
			}
			if j.IsUnchanged() != (test.withheld+test.short == 0) {
				t.Errorf("IsUnchanged is %t", j.IsUnchanged())
			}
		})
	}
}

func TestAChangeIsAllowedByItsDigestAndOnlyOnce(t *testing.T) {
	strong, weak := of(hashing("A", "sha3-512")), of(hashing("A", "sha-256"))
	state := serving([]Candidate{strong})
	change := state.Judge([]Candidate{weak}, 0).Withheld[0]
	weak.Allow = "sha256:00, " + change.Digest
	j := state.Judge([]Candidate{weak}, 0)
	if len(j.Allowed) != 1 || algorithms(j.Served) != "A sha-256" {
		t.Fatalf("the change is not allowed by its digest: %+v", j)
	}
	if again := j.After.Judge([]Candidate{weak}, 0); len(again.Allowed)+len(again.Withheld) != 0 {
		t.Errorf("what is served is a change: %+v", again)
	}
	back := j.After.Judge([]Candidate{strong}, 0).After
	if second := back.Judge([]Candidate{weak}, 0); len(second.Withheld) != 1 || algorithms(second.Served) != "A sha3-512" {
		t.Errorf("the same change is allowed a second time: %+v", second)
	}
}

func TestADigestFitsNoOtherChange(t *testing.T) {
	strong, weak := of(hashing("A", "sha3-512")), of(hashing("A", "sha-256"))
	digest := serving([]Candidate{strong}).Judge([]Candidate{weak}, 0).Withheld[0].Digest
	for sentence, test := range map[string]struct {
		before State
		new    func(*Candidate)
	}{
		"of another object":             {serving([]Candidate{strong}), func(c *Candidate) { c.Source.Name = "other" }},
		"of another namespace":          {serving([]Candidate{strong}), func(c *Candidate) { c.Source.Namespace = "bank" }},
		"of another kind":               {serving([]Candidate{strong}), func(c *Candidate) { c.Source = Source{KindCluster, "", c.Source.Name} }},
		"to something weaker":           {serving([]Candidate{strong}), func(c *Candidate) { c.Profile = hashing("A", "shake-128") }},
		"to something a little less so": {serving([]Candidate{strong}), func(c *Candidate) { c.Profile = hashing("A", "sha-384") }},
		"from something else":           {serving([]Candidate{of(hashing("A", "sha-512"))}), func(*Candidate) {}},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := weak
			test.new(&c)
			c.Allow = digest
			if j := test.before.Judge([]Candidate{c}, 0); len(j.Withheld) != 1 {
				t.Errorf("allowed: %+v", j)
			}
		})
	}
}

func TestAStateIsKeptInAConfigMap(t *testing.T) {
	strong, weak := of(parse(t, complete)), of(hashing("A", "sha-256"))
	before := of(hashing("A", "sha3-512"))
	weak.Allow = serving([]Candidate{before}).Judge([]Candidate{weak}, 0).Withheld[0].Digest
	for sentence, state := range map[string]State{
		"of a namespace that served nothing":     {},
		"with profiles":                          serving([]Candidate{strong, before}),
		"with removed profiles":                  serving([]Candidate{strong}, []Candidate{before}, nil),
		"with one that was allowed to be weaker": serving([]Candidate{before}, []Candidate{weak}),
	} {
		t.Run(sentence, func(t *testing.T) {
			data := ""
			if len(state.served) > 0 {
				data = string(file(state.served))
			}
			read, err := Read(data, state.Annotations(), render.Result{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(state.Annotations(), read.Annotations()); diff != "" {
				t.Errorf("annotations (-want +found):\n%s", diff)
			}
			if string(file(read.served)) != string(file(state.served)) || read.IsEmpty() != state.IsEmpty() {
				t.Errorf("found %+v, expected %+v", read, state)
			}
			if j := read.Judge(candidatesOf(state), 0); len(j.Withheld) > 0 {
				t.Errorf("what is served is weaker than itself: %+v", j.Withheld)
			}
		})
	}
}

func candidatesOf(s State) []Candidate {
	var all []Candidate
	for _, p := range s.served {
		all = append(all, of(p))
	}
	return all
}

func TestAStateThatCannotBeReadIsAnErrorAndSaysWhere(t *testing.T) {
	memory := serving([]Candidate{of(hashing("A", "sha3-512"))}, nil).Annotations()
	for sentence, test := range map[string]struct {
		file        string
		annotations map[string]string
		want        string
	}{
		"no YAML":            {file: "{", annotations: memory, want: "the set of profiles can't be read"},
		"no YAML in memory":  {annotations: map[string]string{v1alpha1.RemovedProfilesAnnotation: "["}, want: "the annotation cryptobroker.io/removed-profiles can't be read"},
		"no JSON in history": {annotations: map[string]string{v1alpha1.ProfilesHistoryAnnotation: "1"}, want: "the annotation cryptobroker.io/profiles-history can't be read"},
	} {
		t.Run(sentence, func(t *testing.T) {
			state, err := Read(test.file, test.annotations, render.Result{})
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("found %v, expected %q", err, test.want)
			}
			if test.file != "" {
				if j := state.Judge([]Candidate{of(hashing("A", "sha-256"))}, 0); len(j.Withheld) != 1 {
					t.Error("what could be read is not compared with")
				}
			}
		})
	}
}

func TestMessagesSayWhatToDo(t *testing.T) {
	strong, weak := of(hashing("A", "sha3-512")), of(hashing("A", "sha-256"))
	c := serving([]Candidate{strong}).Judge([]Candidate{weak}, 0).Withheld[0]
	want := `The profile "A" is weaker than the one that was served, which is still served. ` +
		`spec.api.hashData.hashAlg: "sha-256" has a strength of 128 bits, "sha3-512" had 256 bits. ` +
		`To allow exactly this change, somebody with the verb "weaken" on it runs: ` +
		`kubectl annotate cryptoprofile a --namespace shop --overwrite cryptobroker.io/allow-weaker=` + c.Digest
	if diff := cmp.Diff(want, c.Withheld()); diff != "" {
		t.Errorf("message (-want +found):\n%s", diff)
	}
	c.Weakenings = make([]Weakening, maxSentences+3)
	if sentences := c.Sentences(); len(sentences) != maxSentences+1 || sentences[maxSentences] != "And 3 more." {
		t.Errorf("found %q", sentences)
	}
}
