// SPDX-License-Identifier: Apache-2.0

package accesspolicy_test

import (
	"crypto/ed25519"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/accesspolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/regopolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/tdfpolicy"
)

// document returns a policy with a spec in one line.
func document(name, spec string) string {
	return "apiVersion: cryptobroker.io/v1alpha1\nkind: KeyAccessPolicy\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
}

// allowing returns a policy with one rule.
func allowing(expression string) string {
	return document("p", fmt.Sprintf("{allow: [{name: r, when: %q}]}", expression))
}

func set(t *testing.T, documents ...string) *accesspolicy.Set {
	t.Helper()
	policies, err := accesspolicy.Parse("p.yaml", []byte(strings.Join(documents, "---\n")), nil)
	if err != nil {
		t.Fatal(err)
	}
	found, err := accesspolicy.NewSet(policies)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// noon is a noon in winter, UTC.
var noon = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

var alice = caller.Caller{
	Issuer: "https://idp.example", Subject: "alice", ClientID: "app", ProofKey: ed25519.PublicKey{1},
	Claims: map[string]any{"level": 3.0, "nation": "Ruritania", "admin": "true", "roles": []any{"secret", 7.0}, "null": nil, "realm": map[string]any{"roles": []any{"x"}}},
}

var secret = tdfpolicy.Object{
	KeyID: "ec-1", KeyType: "ec-wrapped", Origin: tdfpolicy.Origin{Address: "10.1.2.3"},
	Policy: tdfpolicy.Policy{Attributes: []string{"https://a/attr/level/value/secret"}, Recipients: []string{"alice"}},
}

func TestAnExpressionPermitsOnlyWhatItSays(t *testing.T) {
	for name, c := range map[string]struct {
		expression string
		permitted  bool
		problem    string // a part of the reason why it could not be evaluated, or empty
	}{
		"the issuer is seen":                                  {"caller.issuer == 'https://idp.example' && caller.subject == 'alice'", true, ""},
		"the same subject of another issuer is another":       {"caller.issuer == 'https://other.example' && caller.subject == 'alice'", false, ""},
		"a number of a claim compares with a whole number":    {"caller.claims.level >= 3", true, ""},
		"a number is not a text":                              {"caller.claims.level == '3'", false, ""},
		"a text is not a bool":                                {"caller.claims.admin == true", false, ""},
		"a text has no order with a number":                   {"caller.claims.nation > 3", false, "no such overload"},
		"a claim that is missing permits nothing":             {"caller.claims.missing == 'x'", false, "no such key"},
		"not the opposite of a missing claim either":          {"!(caller.claims.missing == 'x')", false, "no such key"},
		"a missing claim is asked for":                        {"!has(caller.claims.missing)", true, ""},
		"a claim that is null is no text":                     {"caller.claims['null'] == ''", false, ""},
		"a value in a list of mixed types":                    {"'secret' in caller.claims.roles", true, ""},
		"a text is no list":                                   {"'D' in caller.claims.nation", false, "no such overload"},
		"a claim inside an object":                            {"'x' in caller.claims.realm.roles", true, ""},
		"a caller whose token is bound to a key":              {"caller.bound", true, ""},
		"an attribute of the object":                          {"object.attributes.exists(a, a.startsWith('https://a/attr/level/'))", true, ""},
		"key, type of key and recipients":                     {"object.keyId == 'ec-1' && object.keyType == 'ec-wrapped' && caller.subject in object.recipients", true, ""},
		"an address in a network":                             {"inNetwork(origin.address, '10.0.0.0/8')", true, ""},
		"an address in another network":                       {"inNetwork(origin.address, '192.168.0.0/16')", false, ""},
		"a network that is none":                              {"inNetwork(origin.address, '10.0.0.0/99')", false, "not a network"},
		"no peer":                                             {"origin.peer == ''", true, ""},
		"the hour in UTC":                                     {"now.getHours() == 12", true, ""},
		"the hour in a time zone":                             {"now.getHours('Europe/Berlin') == 13", true, ""},
		"a time zone that is not there":                       {"now.getHours('Europe/Nowhere') == 13", false, "unknown time zone"},
		"a time before another one":                           {"now < timestamp('2026-01-15T13:00:00+01:00')", false, ""},
		"a division by zero":                                  {"1 / (size(object.attributes) - 1) == 1", false, "division by zero"},
		"loops in loops, which cost too much":                 {"[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, a+b+c+d > 0))))", false, "cost limit exceeded"},
		"a text that grows, which costs too much or is small": {"['a'].map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).size() == 1", false, "cost limit exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			d := set(t, allowing(c.expression)).Decide(alice, secret, noon)
			var problem string
			if len(d.Problems) > 0 {
				problem = d.Problems[0].Err.Error()
			}
			if d.Permitted != c.permitted || (c.problem == "") != (problem == "") || !strings.Contains(problem, c.problem) {
				t.Errorf("found %v because %s, with the problem %q; expected %v and %q", d.Permitted, d.Reason, problem, c.permitted, c.problem)
			}
		})
	}
}

func TestPoliciesTogetherPermitWhatEachPermitsAndNoneDenies(t *testing.T) {
	const yes, no, broken = "'1' == '1'", "'1' == '2'", "caller.claims.missing == 1"
	rules := func(name, appliesTo, deny, allow string) string {
		spec := fmt.Sprintf("{appliesTo: %q", appliesTo)
		if deny != "" {
			spec += fmt.Sprintf(", deny: [{name: d, when: %q}]", deny)
		}
		if allow != "" {
			spec += fmt.Sprintf(", allow: [{name: first, when: %q}, {name: a, when: %q}]", broken, allow)
		}
		return document(name, spec+"}")
	}
	for name, c := range map[string]struct {
		documents []string
		permitted bool
		by        string // policy and rule
	}{
		"one that allows, beside a rule that is broken":   {[]string{rules("p", yes, no, yes)}, true, "p a"},
		"one that denies and allows":                      {[]string{rules("p", yes, yes, yes)}, false, "p d"},
		"one that does neither":                           {[]string{rules("p", yes, no, no)}, false, "p "},
		"one whose denial is broken":                      {[]string{rules("p", yes, broken, yes)}, false, "p d"},
		"one whose field of application is broken":        {[]string{rules("p", broken, no, yes)}, false, "p appliesTo"},
		"none that applies":                               {[]string{rules("p", no, no, yes)}, false, ""},
		"one that applies and one that does not":          {[]string{rules("p", yes, no, yes), rules("q", no, yes, no)}, true, "p a"},
		"two that allow":                                  {[]string{rules("p", yes, no, yes), rules("q", yes, no, yes)}, true, "p a q a"},
		"one that allows and one that does not":           {[]string{rules("p", yes, no, yes), rules("q", yes, no, no)}, false, "q "},
		"the second one denies":                           {[]string{rules("p", yes, no, yes), rules("q", yes, yes, "")}, false, "q d"},
		"the first one does not allow, the second denies": {[]string{rules("p", yes, no, no), rules("q", yes, yes, "")}, false, "q d"},
	} {
		t.Run(name, func(t *testing.T) {
			d := set(t, c.documents...).Decide(alice, secret, noon)
			var by []string
			for _, step := range d.By {
				by = append(by, step.Policy+" "+step.Rule)
			}
			if found := strings.Join(by, " "); d.Permitted != c.permitted || found != c.by {
				t.Errorf("found %v by %q because %s", d.Permitted, found, d.Reason)
			}
		})
	}
}

func TestRulesOfAllPoliciesHaveOneBudget(t *testing.T) {
	const costly = "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, a+b+c > 0)))"
	if d := set(t, allowing(costly)).Decide(alice, secret, noon); !d.Permitted {
		t.Fatalf("found %s and %v, expected that one such rule is cheap enough", d.Reason, d.Problems)
	}
	var documents []string
	for i := range 64 {
		documents = append(documents, document(fmt.Sprintf("p%d", i), fmt.Sprintf("{allow: [{name: r, when: %q}]}", costly)))
	}
	d := set(t, documents...).Decide(alice, secret, noon)
	if d.Permitted || len(d.Problems) != 1 || !strings.Contains(d.Problems[0].Err.Error(), "together cost too much") {
		t.Errorf("found %v because %s, with %v", d.Permitted, d.Reason, d.Problems)
	}
}

func TestADecisionNamesWhatItsRulesReadAndWhereTheyAre(t *testing.T) {
	d := set(t, allowing("caller.claims['https://x/y'] == 1 || caller.claims.realm.roles.exists(r, r == caller.subject) || now > timestamp(0)")).Decide(alice, secret, noon)
	expected := []string{`caller.claims.realm.roles`, `caller.claims["https://x/y"]`, "caller.subject", "now"}
	slices.Sort(expected)
	if !d.Permitted || !slices.Equal(d.Inputs, expected) {
		t.Errorf("found %v and the inputs %q, expected %q", d.Permitted, d.Inputs, expected)
	}
	if len(d.By) != 1 || d.By[0].At != "p.yaml:4:32" {
		t.Errorf("found %v, expected the place p.yaml:4:32", d.By)
	}
}

func TestAWrongDocumentIsRefusedWithItsPlace(t *testing.T) {
	deep := strings.Repeat("(", 200) + "true" + strings.Repeat(")", 200)
	for name, c := range map[string]struct{ text, part string }{
		"an unknown variable":             {allowing("caller.clams.x == 1"), "p.yaml:4:32: spec.allow[0].when: line 1, column 1 of the expression: undeclared reference to 'caller'"},
		"an error in the second line":     {allowing("true &&\n  now > 3"), "line 2, column 7 of the expression: found no matching overload"},
		"a syntax error":                  {allowing("true &&"), "column 8 of the expression: Syntax error"},
		"a value that is no bool":         {allowing("caller.claims.admin"), "found the type dyn, expected bool"},
		"a regular expression":            {allowing("caller.subject.matches('(a*)*b')"), "undeclared reference to 'matches'"},
		"an expression that is too long":  {allowing("'" + strings.Repeat("a", 5000) + "' == ''"), "expression code point size exceeds limit"},
		"an expression that is too deep":  {allowing(deep), "recursion"},
		"an unknown field":                {document("p", "{alow: []}"), `p.yaml:4:8: spec: found the unknown field "alow"`},
		"a field twice":                   {document("p", "{allow: [{name: r, when: 'true', when: 'true'}]}"), "a second time"},
		"a rule twice":                    {document("p", "{allow: [{name: r, when: 'true'}, {name: r, when: 'true'}]}"), `spec.allow[1].name: found "r" a second time`},
		"a bool where a text is expected": {document("p", "{allow: [{name: r, when: true}]}"), "expected a text that is not empty"},
		"no rules":                        {document("p", "{}"), "found no rule"},
		"an empty list":                   {document("p", "{deny: []}"), "expected a list of 1 to 64 rules"},
		"no name":                         {strings.Replace(allowing("true"), "{name: p}", "{}", 1), `metadata: expected the field "name"`},
		"another kind":                    {strings.Replace(allowing("true"), "KeyAccessPolicy", "Secret", 1), `kind: found "Secret", expected KeyAccessPolicy`},
		"aliases":                         {document("p", "{allow: &a [*a]}"), "alias"},
		"nothing":                         {"", "found no document"},
		"an empty document":               {"---\n", "expected an object"},
		"no YAML":                         {"{", "p.yaml: "},
		"too much":                        {strings.Repeat("#", 300_000), "more than 262144 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := accesspolicy.Parse("p.yaml", []byte(c.text), nil); err == nil || !strings.Contains(err.Error(), c.part) {
				t.Errorf("found %v, expected %q", err, c.part)
			}
		})
	}
}

func TestAChangeOfTheDirectoryCountsOnlyIfItIsRight(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		t.Helper()
		temporary := filepath.Join(t.TempDir(), "p")
		if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(temporary, filepath.Join(dir, "p.yaml")); err != nil {
			t.Fatal(err)
		}
	}
	write(allowing("'1' == '1'"))
	type change struct {
		set *accesspolicy.Set
		err error
	}
	changes := make(chan change, 10)
	d, err := accesspolicy.Open(dir, nil, func(set *accesspolicy.Set, err error) { changes <- change{set, err} })
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); d.Run(t.Context()) }()
	t.Cleanup(func() { <-done })
	next := func() change {
		t.Helper()
		select {
		case found := <-changes:
			return found
		case <-time.After(time.Minute):
			t.Fatal("nobody has noticed the change for a minute")
			return change{}
		}
	}
	write(allowing("broken"))
	if found := next(); found.err == nil || !d.Set().Decide(alice, secret, noon).Permitted {
		t.Errorf("found %v, expected an error, and the policies as they were", found)
	}
	write(allowing("'1' == '2'"))
	if found := next(); found.err != nil || d.Set().Decide(alice, secret, noon).Permitted {
		t.Errorf("found %v, expected the new policies", found)
	}
}

func TestADecisionIsRecordedWithNamesAndWithoutValues(t *testing.T) {
	var lines strings.Builder
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.New(audit.Options{Output: audit.Stream(&lines), Signer: key})
	if err != nil {
		t.Fatal(err)
	}
	broken := "int(caller.claims.nation) == 1" // the error of CEL has the value
	policies := set(t, document("p", fmt.Sprintf("{appliesTo: \"caller.claims.level == 3\", deny: [{name: d, when: %q}]}", broken)))
	a := accesspolicy.Authorizer{Policies: func() *accesspolicy.Set { return policies }, Audit: log, Now: func() time.Time { return noon }}
	err = a.Authorize(t.Context(), alice, secret)
	log.Close()
	if err == nil || strings.Contains(err.Error(), "Ruritania") {
		t.Errorf("found %v, expected an error without the value of the claim", err)
	}
	for _, part := range []string{`"event":"key-access"`, `"result":"denied"`, `"user.issuer":"https://idp.example"`, `"rules":"p/d"`, `"rules.failed":"p/d"`, `"inputs":"caller.claims.level caller.claims.nation"`} {
		if !strings.Contains(lines.String(), part) {
			t.Errorf("found no %s in %s", part, lines.String())
		}
	}
	if strings.Contains(lines.String(), "Ruritania") {
		t.Errorf("found the value of a claim in %s", lines.String())
	}
}

func TestPoliciesAndTheRulesOfTheConfigurationBothHaveToPermit(t *testing.T) {
	rule := &tdfpolicy.Rules{Attributes: []tdfpolicy.Rule{{Attribute: secret.Policy.Attributes[0], Claim: []string{"roles"}, AnyOf: []string{"secret"}}}}
	other := &tdfpolicy.Rules{Attributes: []tdfpolicy.Rule{{Attribute: secret.Policy.Attributes[0], Claim: []string{"roles"}, AnyOf: []string{"other"}}}}
	for name, c := range map[string]struct {
		document string // empty without policies
		rules    *tdfpolicy.Rules
		part     string // of the error, or empty
	}{
		"rules alone that permit":               {"", rule, ""},
		"rules alone that do not":               {"", other, "has no value"},
		"a policy alone that allows":            {allowing("'1' == '1'"), nil, ""},
		"a policy alone that does not":          {allowing("'1' == '2'"), nil, "no rule of the policy p allows"},
		"both permit":                           {allowing("'1' == '1'"), rule, ""},
		"the rules do not":                      {allowing("'1' == '1'"), other, "has no value"},
		"the policy does not":                   {allowing("'1' == '2'"), rule, "no rule of the policy p allows"},
		"a policy that does not apply":          {document("p", "{appliesTo: 'false', allow: [{name: r, when: 'true'}]}"), rule, ""},
		"a policy that does not apply, no rule": {document("p", "{appliesTo: 'false', allow: [{name: r, when: 'true'}]}"), nil, "no policy applies"},
		"a policy that may apply":               {document("p", "{appliesTo: 'caller.claims.missing == 1', allow: [{name: r, when: 'true'}]}"), rule, "could not be evaluated"},
		"nothing":                               {"", nil, "no policy applies"},
	} {
		t.Run(name, func(t *testing.T) {
			a := accesspolicy.Authorizer{Rules: c.rules, Now: time.Now}
			if c.document != "" {
				policies := set(t, c.document)
				a.Policies = func() *accesspolicy.Set { return policies }
			}
			if err := a.Authorize(t.Context(), alice, secret); (err == nil) != (c.part == "") || err != nil && !strings.Contains(err.Error(), c.part) {
				t.Errorf("found %v, expected %q", err, c.part)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(allowing("caller.claims.level >= 3 && now < timestamp(0)"))
	f.Add(document("p", "{deny: [{name: d, when: 'origin.peer != \"\"'}]}"))
	f.Add("a: &a [*a]\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		policies, err := accesspolicy.Parse("p.yaml", []byte(text), regopolicy.Compile)
		if (err == nil) != (len(policies) > 0) {
			t.Fatalf("found %d policies and %v", len(policies), err)
		}
		if set, err := accesspolicy.NewSet(policies); err == nil && len(policies) > 0 {
			set.Decide(alice, secret, noon)
		}
	})
}
