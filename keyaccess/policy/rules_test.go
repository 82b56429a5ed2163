// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/policy"
)

func TestAPolicyIsReadAsFilesHaveIt(t *testing.T) {
	found, err := policy.Parse(base64.StdEncoding.EncodeToString([]byte(
		`{"uuid":"u","body":{"dataAttributes":[{"attribute":"https://Example.com/attr/A/value/B","displayName":""}],"dissem":["bob"]},"tdf_spec_version":"4.3.0"}`)))
	if err != nil || found.ID != "u" || !slices.Equal(found.Attributes, []string{"https://example.com/attr/a/value/b"}) || !slices.Equal(found.Recipients, []string{"bob"}) {
		t.Errorf("found %v, %v", found, err)
	}
	if found, err := policy.Parse(base64.StdEncoding.EncodeToString([]byte(`{"body":{"dataAttributes":null,"dissem":null}}`))); err != nil || found.Attributes != nil {
		t.Errorf("without attributes: found %v, %v", found, err)
	}
	for name, text := range map[string]string{
		"no body": `{"uuid":"u"}`, "a list": `[]`, "an attribute without a name": `{"body":{"dataAttributes":[{}]}}`,
		"attributes of another type": `{"body":{"dataAttributes":["a"]}}`, "empty": "",
		"attributes twice":           `{"body":{"dataAttributes":[{"attribute":"a"}],"dataAttributes":[]}}`,
		"attributes in another case": `{"body":{"dataAttributes":[{"attribute":"a"}],"DataAttributeſ":[]}}`,
		"two bodies":                 `{"body":{"dataAttributes":[{"attribute":"a"}]},"x":[{}],"BODY":{"dataAttributes":[]}}`,
		"two names of an attribute":  `{"body":{"dataAttributes":[{"attribute":"a","attribute":"b"}]}}`,
		"recipients twice":           `{"body":{"dissem":["alice"],"dissem":null}}`,
	} {
		if found, err := policy.Parse(base64.StdEncoding.EncodeToString([]byte(text))); err == nil {
			t.Errorf("%s: found %v, expected an error", name, found)
		}
	}
}

func TestRulesPermitNothingThatTheyDoNotName(t *testing.T) {
	rule := policy.Rule{Attribute: "https://a/attr/Level/value/Secret", Claim: []string{"realm_access", "roles"}, AnyOf: []string{"secret", "top"}}
	attributes := policy.Rules{Attributes: []policy.Rule{rule}}
	free := policy.Rules{AllowWithoutAttributes: true}
	byMail := policy.Rules{AllowWithoutAttributes: true, RecipientClaim: []string{"email"}}
	who := caller.Caller{Subject: "alice", Claims: map[string]any{
		"email": "alice@example.com", "realm_access": map[string]any{"roles": []any{"user", 1.0, "top"}},
	}}
	other := caller.Caller{Subject: "bob", Claims: map[string]any{"realm_access": []any{"top"}, "roles": "top"}}
	secret := policy.Policy{Attributes: []string{"https://a/attr/level/value/secret"}}
	two := policy.Policy{Attributes: []string{"https://a/attr/level/value/secret", "https://a/attr/level/value/other"}}
	for name, c := range map[string]struct {
		rules  policy.Rules
		who    caller.Caller
		policy policy.Policy
		part   string // of the error, or empty
	}{
		"no rules":                          {policy.Rules{}, who, policy.Policy{}, "no attributes"},
		"everybody may":                     {policy.Rules{AllowAllAuthenticated: true}, other, two, ""},
		"a value in a list":                 {attributes, who, secret, ""},
		"a claim at another place":          {attributes, other, secret, "the claim realm_access.roles has no value"},
		"one of two attributes has no rule": {attributes, who, two, `no rule for the attribute "https://a/attr/level/value/other"`},
		"no attributes":                     {attributes, who, policy.Policy{}, "the policy has no attributes"},
		"no attributes where that is free":  {free, who, policy.Policy{}, ""},
		"among the recipients":              {free, who, policy.Policy{Recipients: []string{"bob", "alice"}}, ""},
		"not among the recipients":          {free, who, policy.Policy{Recipients: []string{"bob"}}, "not among the recipients"},
		"recipients by another claim":       {byMail, who, policy.Policy{Recipients: []string{"alice@example.com"}}, ""},
		"the subject where a claim counts":  {byMail, who, policy.Policy{Recipients: []string{"alice"}}, "not among the recipients"},
		"without the claim that counts":     {byMail, other, policy.Policy{Recipients: []string{"", "bob"}}, "not among the recipients"},
		"recipients and an attribute":       {attributes, who, policy.Policy{Attributes: secret.Attributes, Recipients: []string{"bob"}}, "not among the recipients"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.rules.Authorize(context.Background(), c.who, policy.Object{Policy: c.policy})
			if (c.part == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.part) {
				t.Errorf("found %v, expected %q", err, c.part)
			}
		})
	}
}

func TestRulesThatContradictThemselvesAreRefused(t *testing.T) {
	rule := policy.Rule{Attribute: "https://a", Claim: []string{"b"}, AnyOf: []string{"c"}}
	for name, c := range map[string]struct {
		rules policy.Rules
		part  string // of the error, or empty
	}{
		"a rule":             {policy.Rules{Attributes: []policy.Rule{rule}}, ""},
		"everybody":          {policy.Rules{AllowAllAuthenticated: true}, ""},
		"nothing":            {policy.Rules{}, "nobody may have a key"},
		"everybody and more": {policy.Rules{AllowAllAuthenticated: true, Attributes: []policy.Rule{rule}}, "expected one or the other"},
		"twice":              {policy.Rules{Attributes: []policy.Rule{rule, {Attribute: "HTTPS://A", Claim: rule.Claim, AnyOf: rule.AnyOf}}}, "a second time"},
		"no claim":           {policy.Rules{Attributes: []policy.Rule{{Attribute: "a", AnyOf: rule.AnyOf}}}, "attributes[0].claim"},
		"no values":          {policy.Rules{Attributes: []policy.Rule{{Attribute: "a", Claim: rule.Claim}}}, "attributes[0].anyOf"},
		"no name":            {policy.Rules{Attributes: []policy.Rule{{Claim: rule.Claim, AnyOf: rule.AnyOf}}}, "attributes[0].attribute"},
	} {
		if err := c.rules.Check(); (c.part == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: found %v, expected %q", name, err, c.part)
		}
	}
}
