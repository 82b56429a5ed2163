// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAccessIsExplainedWithTheRuleThatDecides(t *testing.T) {
	const text = `apiVersion: cryptobroker.io/v1alpha1
kind: KeyAccessPolicy
metadata: {name: secret-files}
spec:
  appliesTo: "'https://example.com/attr/level/value/secret' in object.attributes"
  deny:
  - name: nights
    when: now.getHours('Europe/Berlin') < 6
  allow:
  - name: cleared
    when: caller.issuer == 'https://idp.example.com' && caller.claims.clearance >= 3
`
	const module = `apiVersion: cryptobroker.io/v1alpha1
kind: KeyAccessPolicy
metadata: {name: in-rego}
spec:
  rego: |
    package keyaccess
    allow if input.caller.claims.clearance >= 3
`
	folder := t.TempDir()
	policies, wrong, rego := filepath.Join(folder, "policies.yaml"), filepath.Join(folder, "wrong.yaml"), filepath.Join(folder, "rego.yaml")
	for name, text := range map[string]string{policies: text, wrong: strings.Replace(text, "caller.issuer", "caller.isuer", 1), rego: module} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const request = `{"object":{"attributes":["https://example.com/attr/Level/value/Secret"]},"caller":{"issuer":"https://idp.example.com","subject":"alice","claims":{"clearance":3}},"now":"2026-01-15T12:00:00Z"}`
	for name, c := range map[string]struct {
		file, request string
		json          bool
		exit          int
		parts         []string
	}{
		"permitted":          {policies, request, false, 0, []string{"permitted: ", "by       secret-files cleared " + policies + ":11:11", "input    caller.claims.clearance", "input    now"}},
		"permitted, in JSON": {policies, request, true, 0, []string{`"permitted": true`, `"rule": "cleared"`}},
		"denied at night":    {policies, strings.Replace(request, "T12", "T03", 1), false, 3, []string{"denied: the rule nights of the policy secret-files denies", policies + ":8:11"}},
		"a claim is missing": {policies, strings.Replace(request, "clearance", "clear", 1), false, 3, []string{"denied: no rule of the policy", "problem  secret-files cleared ", "no such key: clearance"}},
		"no policy applies":  {policies, `{}`, false, 3, []string{"denied: no policy applies"}},
		"a module in Rego":   {rego, request, false, 1, []string{rego + ":5:9: spec.rego: found a module in Rego, which only the program of the key gateway has: use gateway access explain, with the same flags"}},
		"a wrong policy":     {wrong, request, false, 1, []string{wrong + ":11:11: spec.allow[0].when: line 1, column 1 of the expression: undeclared reference"}},
		"a wrong request":    {policies, `{"object":{"attribute":[]}}`, false, 2, []string{`unknown field "attribute"`}},
		"two requests":       {policies, `{} {}`, false, 2, []string{"more than one JSON object"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			args := []string{"access", "explain", "--request", "-", c.file}
			if c.json {
				args = append(args, "--output", "json")
			}
			exit := run(t.Context(), args, strings.NewReader(c.request), &out, &out)
			if exit != c.exit {
				t.Errorf("found the exit code %d, expected %d", exit, c.exit)
			}
			for _, part := range c.parts {
				if !strings.Contains(out.String(), part) {
					t.Errorf("found no %q in %s", part, &out)
				}
			}
		})
	}
}
