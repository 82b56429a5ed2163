// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

func TestAccessByPoliciesInRegoIsExplained(t *testing.T) {
	const text = `apiVersion: cryptobroker.io/v1alpha1
kind: KeyAccessPolicy
metadata: {name: in-rego}
spec:
  rego: |
    package keyaccess
    allow if input.caller.claims.clearance >= 3
---
apiVersion: cryptobroker.io/v1alpha1
kind: KeyAccessPolicy
metadata: {name: in-cel}
spec: {allow: [{name: alice, when: caller.subject == 'alice'}]}
`
	folder := t.TempDir()
	policies := write(t, filepath.Join(folder, "policies.yaml"), text)
	wrong := write(t, filepath.Join(folder, "wrong.yaml"), strings.Replace(text, "input.caller", "input.called", 1))
	const request = `{"caller":{"issuer":"https://idp.example.com","subject":"alice","claims":{"clearance":3}},"now":"2026-01-15T12:00:00Z"}`
	for name, c := range map[string]struct {
		args    []string
		request string
		exit    int
		parts   []string
	}{
		"permitted":          {[]string{"explain", "--request", "-", policies}, request, program.ExitOK, []string{"permitted: ", "by       in-rego allow " + policies + ":5:9", "by       in-cel alice ", "input    caller.claims.clearance"}},
		"permitted, in JSON": {[]string{"explain", "--request=-", "-o", "json", policies}, request, program.ExitOK, []string{`"permitted": true`, `"policy": "in-rego"`}},
		"denied":             {[]string{"explain", "--request=-", policies}, `{"caller":{"subject":"alice"}}`, 3, []string{"denied: no rule of the policy in-rego allows"}},
		"a wrong module":     {[]string{"explain", "--request=-", wrong}, request, program.ExitFailed, []string{"gateway access: " + wrong + ":5:9: spec.rego: line 2, column 10 of the module: undefined ref: input.called"}},
		"no request":         {[]string{"explain", policies}, "", program.ExitUsage, []string{"--request is empty, expected a file or -"}},
		"no policy":          {[]string{"explain", "--request=-"}, "", program.ExitUsage, []string{`found the arguments ["explain"], expected explain and at least one file of policies`}},
		"another output":     {[]string{"explain", "--output=xml", policies}, "", program.ExitUsage, []string{`--output is "xml", expected text or json`}},
		"another command":    {[]string{"decide", policies}, "", program.ExitUsage, []string{"expected explain"}},
		"an unknown flag":    {[]string{"--x"}, "", program.ExitUsage, []string{"unknown flag: --x\nSee gateway access --help."}},
		"help":               {[]string{"explain", "--help"}, "", program.ExitOK, []string{"Policies may be in Rego, whether a service permits it or not.", "--request"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if exit := runAccess(c.args, strings.NewReader(c.request), &out, &out); exit != c.exit {
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

func TestAWrongCommandLineOfRegoCheckIsRefusedWithASentence(t *testing.T) {
	for part, args := range map[string][]string{
		`socket directory "x": expected an absolute path`: {"--socket-dir=x"},
		`unexpected argument "x", expected flags only`:    {"x"},
		"unknown flag: --x":                               {"--x"},
	} {
		var said strings.Builder
		if code := runRegoCheck(t.Context(), args, strings.NewReader(""), &said, &said); code != program.ExitUsage || !strings.Contains(said.String(), part) {
			t.Errorf("found the exit code %d and %s, expected %q", code, &said, part)
		}
	}
}
