// SPDX-License-Identifier: Apache-2.0

package tdfpolicy_test

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/tdfpolicy"
)

func TestAPolicyIsReadAsFilesHaveIt(t *testing.T) {
	found, err := tdfpolicy.Parse(base64.StdEncoding.EncodeToString([]byte(
		`{"uuid":"u","body":{"dataAttributes":[{"attribute":"https://Example.com/attr/A/value/B","displayName":""}],"dissem":["bob"]},"tdf_spec_version":"4.3.0"}`)))
	if err != nil || found.ID != "u" || !slices.Equal(found.Attributes, []string{"https://example.com/attr/a/value/b"}) || !slices.Equal(found.Recipients, []string{"bob"}) {
		t.Errorf("found %v, %v", found, err)
	}
	if found, err := tdfpolicy.Parse(base64.StdEncoding.EncodeToString([]byte(`{"body":{"dataAttributes":null,"dissem":null}}`))); err != nil || found.Attributes != nil {
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
		if found, err := tdfpolicy.Parse(base64.StdEncoding.EncodeToString([]byte(text))); err == nil {
			t.Errorf("%s: found %v, expected an error", name, found)
		}
	}
}

func TestRulesPermitNothingThatTheyDoNotName(t *testing.T) {
	rule := tdfpolicy.Rule{Attribute: "https://a/attr/Level/value/Secret", Claim: []string{"realm_access", "roles"}, AnyOf: []string{"secret", "top"}}
	attributes := tdfpolicy.Rules{Attributes: []tdfpolicy.Rule{rule}}
	free := tdfpolicy.Rules{AllowWithoutAttributes: true}
	byMail := tdfpolicy.Rules{AllowWithoutAttributes: true, RecipientClaim: []string{"email"}}
	who := caller.Caller{Subject: "alice", Claims: map[string]any{
		"email": "alice@example.com", "realm_access": map[string]any{"roles": []any{"user", 1.0, "top"}},
	}}
	other := caller.Caller{Subject: "bob", Claims: map[string]any{"realm_access": []any{"top"}, "roles": "top"}}
	secret := tdfpolicy.Policy{Attributes: []string{"https://a/attr/level/value/secret"}}
	two := tdfpolicy.Policy{Attributes: []string{"https://a/attr/level/value/secret", "https://a/attr/level/value/other"}}
	for name, c := range map[string]struct {
		rules  tdfpolicy.Rules
		who    caller.Caller
		policy tdfpolicy.Policy
		part   string // of the error, or empty
	}{
		"no rules":                          {tdfpolicy.Rules{}, who, tdfpolicy.Policy{}, "no attributes"},
		"everybody may":                     {tdfpolicy.Rules{AllowAllAuthenticated: true}, other, two, ""},
		"a value in a list":                 {attributes, who, secret, ""},
		"a claim at another place":          {attributes, other, secret, "the claim realm_access.roles has no value"},
		"one of two attributes has no rule": {attributes, who, two, `no rule for the attribute "https://a/attr/level/value/other"`},
		"no attributes":                     {attributes, who, tdfpolicy.Policy{}, "the policy has no attributes"},
		"no attributes where that is free":  {free, who, tdfpolicy.Policy{}, ""},
		"among the recipients":              {free, who, tdfpolicy.Policy{Recipients: []string{"bob", "alice"}}, ""},
		"not among the recipients":          {free, who, tdfpolicy.Policy{Recipients: []string{"bob"}}, "not among the recipients"},
		"recipients by another claim":       {byMail, who, tdfpolicy.Policy{Recipients: []string{"alice@example.com"}}, ""},
		"the subject where a claim counts":  {byMail, who, tdfpolicy.Policy{Recipients: []string{"alice"}}, "not among the recipients"},
		"without the claim that counts":     {byMail, other, tdfpolicy.Policy{Recipients: []string{"", "bob"}}, "not among the recipients"},
		"recipients and an attribute":       {attributes, who, tdfpolicy.Policy{Attributes: secret.Attributes, Recipients: []string{"bob"}}, "not among the recipients"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.rules.Authorize(context.Background(), c.who, tdfpolicy.Object{Policy: c.policy})
			if (c.part == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.part) {
				t.Errorf("found %v, expected %q", err, c.part)
			}
		})
	}
}

func TestRulesThatContradictThemselvesAreRefused(t *testing.T) {
	rule := tdfpolicy.Rule{Attribute: "https://a", Claim: []string{"b"}, AnyOf: []string{"c"}}
	for name, c := range map[string]struct {
		rules tdfpolicy.Rules
		part  string // of the error, or empty
	}{
		"a rule":             {tdfpolicy.Rules{Attributes: []tdfpolicy.Rule{rule}}, ""},
		"everybody":          {tdfpolicy.Rules{AllowAllAuthenticated: true}, ""},
		"nothing":            {tdfpolicy.Rules{}, "nobody may have a key"},
		"everybody and more": {tdfpolicy.Rules{AllowAllAuthenticated: true, Attributes: []tdfpolicy.Rule{rule}}, "expected one or the other"},
		"twice":              {tdfpolicy.Rules{Attributes: []tdfpolicy.Rule{rule, {Attribute: "HTTPS://A", Claim: rule.Claim, AnyOf: rule.AnyOf}}}, "a second time"},
		"no claim":           {tdfpolicy.Rules{Attributes: []tdfpolicy.Rule{{Attribute: "a", AnyOf: rule.AnyOf}}}, "attributes[0].claim"},
		"no values":          {tdfpolicy.Rules{Attributes: []tdfpolicy.Rule{{Attribute: "a", Claim: rule.Claim}}}, "attributes[0].anyOf"},
		"no name":            {tdfpolicy.Rules{Attributes: []tdfpolicy.Rule{{Claim: rule.Claim, AnyOf: rule.AnyOf}}}, "attributes[0].attribute"},
	} {
		if err := c.rules.Check(); (c.part == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: found %v, expected %q", name, err, c.part)
		}
	}
}
