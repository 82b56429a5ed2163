// SPDX-License-Identifier: Apache-2.0

package accesspolicy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/tdfpolicy"
)

func TestAPolicyInTextDecidesAsTheSameDocument(t *testing.T) {
	from, mistakes := Compile("secret", Source{
		AppliesTo: "size(object.attributes) > 0",
		Deny:      []SourceRule{{"nobody", "caller.subject == 'mallory'"}},
		Allow:     []SourceRule{{"cleared", "caller.claims.clearance >= 3"}},
	}, nil)
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	documents, err := Parse("secret.yaml", []byte(`apiVersion: cryptobroker.io/v1alpha1
kind: KeyAccessPolicy
metadata: {name: secret}
spec:
  appliesTo: size(object.attributes) > 0
  deny: [{name: nobody, when: caller.subject == 'mallory'}]
  allow: [{name: cleared, when: caller.claims.clearance >= 3}]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []caller.Caller{
		{Subject: "alice", Claims: map[string]any{"clearance": 3.0}}, {Subject: "alice"}, {Subject: "mallory", Claims: map[string]any{"clearance": 3.0}},
	} {
		for _, attributes := range [][]string{nil, {"https://example.com/attr/a/value/b"}} {
			object := tdfpolicy.Object{Policy: tdfpolicy.Policy{Attributes: attributes}}
			var found []Decision
			for _, p := range []*Policy{from, documents[0]} {
				set, err := NewSet([]*Policy{p})
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, set.Decide(who, object, time.Now()))
			}
			if found[0].Permitted != found[1].Permitted || fmt.Sprint(found[0].Applied, found[0].Inputs) != fmt.Sprint(found[1].Applied, found[1].Inputs) {
				t.Errorf("%s with %v: found %+v, and for the document %+v", who.Subject, attributes, found[0], found[1])
			}
		}
	}
}

func TestMistakesOfAPolicyInTextHaveTheirPlace(t *testing.T) {
	long := make([]SourceRule, 5)
	for i := range long {
		long[i] = SourceRule{fmt.Sprint("r", i), strings.Repeat("x", 4000)}
	}
	for name, c := range map[string]struct {
		source Source
		want   string
	}{
		"no rule":         {Source{AppliesTo: "true"}, " 0 found no rule, expected rules that allow or deny"},
		"too many rules":  {Source{Allow: make([]SourceRule, 65)}, " 0 found 65 rules under allow, expected at most 64"},
		"too long":        {Source{Allow: long}, " 0 found expressions of 20000 characters together, expected at most 16384"},
		"two in one":      {Source{Allow: []SourceRule{{"a", "true"}, {"b", "x ||\n y"}}}, "allow 1 line 1, column 1 of the expression: undeclared reference to 'x'; allow 1 line 2, column 2 of the expression: undeclared reference to 'y'"},
		"appliesTo":       {Source{AppliesTo: "now", Deny: []SourceRule{{"a", "true"}}}, "appliesTo 0 line 1, column 1 of the expression: found the type google.protobuf.Timestamp"},
		"one in each":     {Source{Deny: []SourceRule{{"a", "x"}}, Allow: []SourceRule{{"a", "y"}}}, "deny 0 line 1, column 1 of the expression: undeclared reference to 'x'; allow 0 line 1, column 1"},
		"an empty branch": {Source{Deny: []SourceRule{{"a", "true || "}}}, "deny 0 line 1, column 9 of the expression: Syntax error"},
	} {
		p, mistakes := Compile("p", c.source, nil)
		var found []string
		for _, m := range mistakes {
			found = append(found, fmt.Sprintf("%s %d %s", m.List, m.Index, m.Err))
		}
		if text := strings.Join(found, "; "); p != nil || !strings.Contains(text, c.want) {
			t.Errorf("%s: found %s, expected %s", name, text, c.want)
		}
	}
}
