// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestTheSchemaOfKeyAccessPolicies(t *testing.T) {
	rules := func(count int) string {
		var all []string
		for i := range count {
			all = append(all, fmt.Sprintf("{name: r%d, when: 'true'}", i))
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	for sentence, test := range map[string]struct{ spec, refusal string }{
		"accepts every field":                  {"{appliesTo: caller.bound, deny: [{name: a.b-c, when: 'true'}], allow: [{name: a, when: 'true'}]}", ""},
		"accepts 64 rules":                     {"{allow: " + rules(64) + "}", ""},
		"accepts a module in Rego":             {"{appliesTo: caller.bound, rego: 'package keyaccess'}", ""},
		"refuses a module beside rules":        {"{rego: 'package keyaccess', deny: [{name: a, when: 'true'}]}", "found rego beside rules, expected one or the other"},
		"refuses an empty module":              {"{rego: ''}", "spec.rego"},
		"refuses a module that is long":        {"{rego: '" + strings.Repeat("x", 16385) + "'}", "Too long: may not be "},
		"refuses no rule":                      {"{appliesTo: caller.bound}", "found no rule, expected rules that allow or deny"},
		"refuses 65 rules":                     {"{deny: " + rules(65) + "}", "must have at most 64 items"},
		"refuses an empty list of rules":       {"{allow: []}", "spec.allow"},
		"refuses a name twice":                 {"{allow: [{name: a, when: 'true'}, {name: a, when: 'false'}]}", "Duplicate value"},
		"refuses a name with a space":          {"{allow: [{name: 'a b', when: 'true'}]}", "spec.allow[0].name"},
		"refuses a rule without an expression": {"{allow: [{name: a}]}", "spec.allow[0].when: Required value"},
		"refuses an empty expression":          {"{allow: [{name: a, when: ''}]}", "spec.allow[0].when"},
		"refuses an expression that is long":   {"{allow: [{name: a, when: '" + strings.Repeat("x", 4097) + "'}]}", "Too long: may not be "},
		"refuses a field that does not exist":  {"{alow: [{name: a, when: 'true'}]}", `unknown field "spec.alow"`},
	} {
		t.Run(sentence, func(t *testing.T) { expectAnswer(t, create(t, "KeyAccessPolicy", "secret", test.spec), test.refusal) })
	}
}

func TestTheSchemaOfKeyAccessPeers(t *testing.T) {
	peer := func(more string) string { return "{url: 'https://b.example'" + more + "}" }
	for sentence, test := range map[string]struct{ spec, refusal string }{
		"accepts a URL alone": {peer(""), ""},
		"accepts every field": {peer(`, authorities: pem, routes: ['https://c.example:8443'], timeout: 1m, issuers: [{url: 'https://i.example/a',
			audiences: [a], algorithms: [ES256, EdDSA], proofWithBearer: true, proofWithPath: true, requireTokenType: true, authorities: pem}]`), ""},
		"refuses http":                              {"{url: 'http://b.example'}", "spec.url"},
		"refuses a path":                            {"{url: 'https://b.example/kas'}", "spec.url"},
		"refuses a user":                            {"{url: 'https://me@b.example'}", "spec.url"},
		"refuses no URL":                            {"{timeout: 1s}", "spec.url: Required value"},
		"refuses a time of nothing":                 {peer(", timeout: 0s"), "expected 10ms to 5m"},
		"refuses six minutes":                       {peer(", timeout: 6m"), "expected 10ms to 5m"},
		"refuses a route twice":                     {peer(", routes: ['https://c.example', 'https://c.example']"), "Duplicate value"},
		"refuses an issuer without an audience":     {peer(", issuers: [{url: 'https://i.example'}]"), "spec.issuers[0].audiences: Required value"},
		"refuses an issuer twice":                   {peer(", issuers: [{url: 'https://i.example', audiences: [a]}, {url: 'https://i.example', audiences: [b]}]"), "Duplicate value"},
		"refuses an issuer by http":                 {peer(", issuers: [{url: 'http://i.example', audiences: [a]}]"), "spec.issuers[0].url"},
		"refuses an algorithm that is not accepted": {peer(", issuers: [{url: 'https://i.example', audiences: [a], algorithms: [HS256]}]"), "Unsupported value"},
		"refuses tokens of whoever has them":        {peer(", issuers: [{url: 'https://i.example', audiences: [a], plainBearer: true}]"), `unknown field "spec.issuers[0].plainBearer"`},
		"refuses a private key":                     {peer(", authorities: '-----BEGIN PRIVATE KEY-----'"), "found a private key, expected certificates only"},
	} {
		t.Run(sentence, func(t *testing.T) { expectAnswer(t, create(t, "KeyAccessPeer", "b", test.spec), test.refusal) })
	}
}
