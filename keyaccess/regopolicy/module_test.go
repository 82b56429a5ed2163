// SPDX-License-Identifier: Apache-2.0

package regopolicy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/accesspolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/tdfpolicy"
)

// inRego returns a policy whose module has these rules.
func inRego(t testing.TB, name, rules string) *accesspolicy.Policy {
	t.Helper()
	p, mistakes := accesspolicy.Compile(name, accesspolicy.Source{Rego: "package keyaccess\n\n" + rules}, Compile)
	if len(mistakes) > 0 {
		t.Fatalf("%s: %v", rules, mistakes)
	}
	return p
}

func decide(t testing.TB, policies ...*accesspolicy.Policy) accesspolicy.Decision {
	t.Helper()
	set, err := accesspolicy.NewSet(policies)
	if err != nil {
		t.Fatal(err)
	}
	who := caller.Caller{Issuer: "https://idp.example", Subject: "alice", Claims: map[string]any{"level": 3.0, "roles": []any{"secret", 7.0}, "text": strings.Repeat("a", 1000)}}
	object := tdfpolicy.Object{
		KeyID: "ec-1", KeyType: "ec-wrapped", Origin: tdfpolicy.Origin{Address: "10.1.2.3"},
		Policy: tdfpolicy.Policy{Attributes: []string{"https://a/attr/level/value/secret"}, Recipients: []string{"alice"}},
	}
	return set.Decide(who, object, time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC))
}

func TestAModulePermitsOnlyWhatItSays(t *testing.T) {
	for rules, c := range map[string]struct {
		permitted bool
		reason    string
	}{
		"allow if input.caller.issuer == \"https://idp.example\"":                                {true, "each policy that applies allows"},
		"allow if input.caller.claims.level >= 4":                                                {false, "no rule of the policy p allows"},
		"allow if input.caller.claims.missing == 1":                                              {false, "no rule of the policy p allows"},
		"default allow := false":                                                                 {false, "no rule of the policy p allows"},
		"allow if \"secret\" in input.caller.claims.roles":                                       {true, ""},
		"allow if net.cidr_contains(\"10.0.0.0/8\", input.origin.address)":                       {true, ""},
		"allow if net.cidr_contains(\"10.0.0.0/8\", input.caller.subject)":                       {false, "no rule of the policy p allows"},
		"allow if time.clock(time.parse_rfc3339_ns(input.now))[0] == 12":                         {true, ""},
		"allow if time.clock([time.parse_rfc3339_ns(input.now), \"Asia/Tokyo\"])[0] == 21":       {true, ""},
		"allow if {\n some a in input.object.attributes\n startswith(a, \"https://a/attr/\")\n}": {true, ""},
		"allow if input.caller.subject in input.object.recipients":                               {true, ""},
		"allow := \"yes\"": {false, "no rule of the policy p allows"},
		"allow := true\ndeny if input.caller.subject == \"alice\"":                          {false, "the rule deny of the policy p denies (spec.rego)"},
		"allow := true\ndeny if input.caller.subject == \"bob\"":                            {true, ""},
		"allow := true\ndefault deny := true\ndeny := false if input.caller.bound == false": {true, ""},
		// Rules that cannot be evaluated must not be ignored.
		"allow := true\ndeny := \"yes\"": {false, "the rule deny of the policy p could not be evaluated (spec.rego)"},
		"allow := true\ndeny if not net.cidr_contains(\"10.0.0.0/8\", input.caller.subject)": {false, "the rule deny of the policy p could not be evaluated (spec.rego)"},
	} {
		d := decide(t, inRego(t, "p", rules))
		if d.Permitted != c.permitted || c.reason != "" && d.Reason != c.reason {
			t.Errorf("%s: found %t, %s, expected %t, %s; %v", rules, d.Permitted, d.Reason, c.permitted, c.reason, d.Problems)
		}
	}
}

func TestAModuleAddsUpWithOtherPolicies(t *testing.T) {
	expression := func(name, allow string) *accesspolicy.Policy {
		p, mistakes := accesspolicy.Compile(name, accesspolicy.Source{Allow: []accesspolicy.SourceRule{{Name: "a", When: allow}}}, nil)
		if len(mistakes) > 0 {
			t.Fatal(mistakes)
		}
		return p
	}
	allows, denies := inRego(t, "rego", "allow := true"), inRego(t, "rego", "allow := true\ndeny := true")
	for _, c := range []struct {
		policies  []*accesspolicy.Policy
		permitted bool
	}{
		{[]*accesspolicy.Policy{allows, expression("cel", "true")}, true},
		{[]*accesspolicy.Policy{allows, expression("cel", "false")}, false},
		{[]*accesspolicy.Policy{denies, expression("cel", "true")}, false},
	} {
		if d := decide(t, c.policies...); d.Permitted != c.permitted {
			t.Errorf("found %+v, expected %t", d, c.permitted)
		}
	}
	p, mistakes := accesspolicy.Compile("other", accesspolicy.Source{AppliesTo: "object.keyId == 'other'", Rego: "package keyaccess\nallow := true"}, Compile)
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	if d := decide(t, p); d.Permitted || d.Reason != "no policy applies" {
		t.Errorf("found %+v, expected a policy that does not apply", d)
	}
}

func TestWhatAModuleReadsIsInTheDecision(t *testing.T) {
	d := decide(t, inRego(t, "p", `allow if {
	input.caller.claims.level >= 3
	input.caller.claims["given name"] != "x"
	some a in input.object.attributes
	level(a)
	input.caller.claims.roles[_] == "secret"
}

level(a) if startswith(a, input.origin.peer)`))
	want := []string{`caller.claims.level`, `caller.claims.roles`, `caller.claims["given name"]`, "object.attributes", "origin.peer"}
	slices.Sort(want)
	if !slices.Equal(d.Inputs, want) {
		t.Errorf("found the inputs %q, expected %q", d.Inputs, want)
	}
	if d := decide(t, inRego(t, "p", "allow if count(input) > 0")); !slices.Equal(d.Inputs, []string{"input"}) {
		t.Errorf("found the inputs %q of a module that reads everything", d.Inputs)
	}
}

func TestAModuleIsRefusedWithThePlaceOfWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"package other\nallow := true":                                                      "line 1, column 1 of the module: expected it to begin with: package keyaccess",
		"allow := true":                                                                     "line 1, column 1 of the module: package expected",
		"package keyaccess\ndeny := true":                                                   "line 1, column 1 of the module: found no rule allow, without which nothing is permitted",
		"package keyaccess\nallow if {\n  x ==":                                             "line 3, column 6 of the module: unexpected eof token",
		"package keyaccess\nallow if input.caller.isuer == \"x\"":                           "line 2, column 10 of the module: undefined ref: input.caller.isuer",
		"package keyaccess\nallow if x":                                                     "line 2, column 10 of the module: var x is unsafe",
		"package keyaccess\nallow if allow":                                                 "line 2, column 1 of the module: rule data.keyaccess.allow is recursive",
		"package keyaccess\nallow if http.send({\"url\": \"https://example.com\"})":         "line 2, column 10 of the module: undefined function http.send",
		"package keyaccess\nallow if net.lookup_ip_addr(\"example.com\")":                   "undefined function net.lookup_ip_addr",
		"package keyaccess\nallow if time.now_ns() > 0":                                     "undefined function time.now_ns",
		"package keyaccess\nallow if rand.intn(\"x\", 2) == 0":                              "undefined function rand.intn",
		"package keyaccess\nallow if opa.runtime().env.HOME":                                "undefined function opa.runtime",
		"package keyaccess\nallow if regex.match(\"a\", input.now)":                         "undefined function regex.match",
		"package keyaccess\nallow if trace(\"x\")":                                          "undefined function trace",
		"package keyaccess\nallow contains \"x\" if true":                                   "line 2, column 1 of the module: found a set, an object or a function with the name allow, expected a rule that is true or false",
		"package keyaccess\nallow := true\ndeny contains \"x\" if true":                     "line 3, column 1 of the module: found a set, an object or a function with the name deny, expected a rule that is true or false",
		"package keyaccess\nallow(x) if x":                                                  "found a set, an object or a function with the name allow",
		"package keyaccess\nallow := true\n#" + strings.Repeat("x", accesspolicy.MaxSource): fmt.Sprintf("found a module of %d characters, expected at most %d", accesspolicy.MaxSource+33, accesspolicy.MaxSource),
	} {
		p, mistakes := accesspolicy.Compile("p", accesspolicy.Source{Rego: text}, Compile)
		if p != nil || len(mistakes) == 0 || mistakes[0].List != "rego" || !strings.Contains(mistakes[0].Err.Error(), want) {
			t.Errorf("%.100s: found %v, expected %s", text, mistakes, want)
		}
	}
}

func TestAModuleIsRefusedWhereRegoIsOffOrRulesStandBesideIt(t *testing.T) {
	const module = "package keyaccess\nallow := true"
	for want, try := range map[string]func() []accesspolicy.Mistake{
		"found a module in Rego, which is off": func() []accesspolicy.Mistake {
			_, mistakes := accesspolicy.Compile("p", accesspolicy.Source{Rego: module}, nil)
			return mistakes
		},
		"found a module in Rego together with rules": func() []accesspolicy.Mistake {
			_, mistakes := accesspolicy.Compile("p", accesspolicy.Source{Rego: module, Allow: []accesspolicy.SourceRule{{Name: "a", When: "true"}}}, Compile)
			return mistakes
		},
	} {
		if found := try(); len(found) != 1 || found[0].List != "rego" || !strings.Contains(found[0].Err.Error(), want) {
			t.Errorf("found %v, expected %s", found, want)
		}
	}
	document := func(more string) []byte {
		return []byte("apiVersion: cryptobroker.io/v1alpha1\nkind: KeyAccessPolicy\nmetadata: {name: p}\nspec:\n" + more + "  rego: |\n    package keyaccess\n    allow if input.caller.bound\n")
	}
	if policies, err := accesspolicy.Parse("p.yaml", document(""), Compile); err != nil || len(policies) != 1 {
		t.Errorf("found %v, %v, expected a policy", policies, err)
	}
	for _, c := range []struct {
		text    []byte
		modules accesspolicy.CompileModule
		want    string
	}{
		{document(""), nil, "p.yaml:5:9: spec.rego: found a module in Rego, which is off"},
		{document("  deny: [{name: a, when: 'true'}]\n"), Compile, "p.yaml:6:9: spec.rego: found a module in Rego together with rules"},
		{[]byte(strings.Replace(string(document("")), "bound", "bond", 1)), Compile, "p.yaml:5:9: spec.rego: line 2, column 10 of the module: undefined ref: input.caller.bond"},
	} {
		if _, err := accesspolicy.Parse("p.yaml", c.text, c.modules); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("found %v, expected %s", err, c.want)
		}
	}
}

// The bound shows that the mechanism works: without it, the module would take years.
func TestAModuleThatTakesLongIsEnded(t *testing.T) {
	var rules strings.Builder
	rules.WriteString("digits := {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}\nallow if {\n")
	for i := range 20 {
		fmt.Fprintf(&rules, "\tsome x%d in digits\n", i)
	}
	rules.WriteString("\tx0 + x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9 + x10 + x11 + x12 + x13 + x14 + x15 + x16 + x17 + x18 + x19 == 1000\n}\n")
	p := inRego(t, "slow", rules.String())
	began := time.Now()
	d := decide(t, p)
	if d.Permitted || len(d.Problems) != 1 || !strings.Contains(d.Problems[0].Err.Error(), "cancel") {
		t.Errorf("found %+v, expected a rule that was ended", d)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the decision took %s", took)
	}
}

// OPA's parser takes twice as long for each level of these terms. The test does not wait until it has ended.
func TestAModuleThatTakesLongToCompileIsRefusedAndOthersWithIt(t *testing.T) {
	slow := "package keyaccess\nallow if " + strings.Repeat("count([1|", 16) + "1" + strings.Repeat("])==1", 16)
	expectOnly := func(text, want string) {
		t.Helper()
		if _, mistakes := accesspolicy.Compile("p", accesspolicy.Source{Rego: text}, Compile); len(mistakes) != 1 || !strings.Contains(mistakes[0].Err.Error(), want) {
			t.Errorf("found %v, expected %s", mistakes, want)
		}
	}
	// The compilation continues after the end of the test, so the test has its own place for compilations.
	own := compiling
	compiling = make(chan struct{}, 1)
	defer func() { compiling = own }()
	expectOnly(slow, "it takes longer than 3s to compile")
	expectOnly("package keyaccess\nallow := true", "another module is compiled")
}
