// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

func TestEachCommandEndsWithTheExitCodeOfItsDocumentation(t *testing.T) {
	ns := uncovered(t)
	makePod(t, provided(t, ns), "missed-1-a", "true", makeDeployment(t, ns, "missed", asks()))
	label(t, ns)
	makeDeployment(t, ns, "paused", asks(), func(d *appsv1.Deployment) { d.Spec.Paused = true })
	empty, refused := covered(t), covered(t)
	makePod(t, refused, "bare", "", nil)
	makeDeployment(t, refused, "refused", annotated(map[string]string{"cryptobroker.io/inject": "perhaps"}))
	viewer := viewer(t, ns)
	for sentence, test := range map[string]struct {
		code int
		args []string
	}{
		"a list of pods, some of which miss their broker": {exitOK, []string{"pods", "-n", ns}},
		"a list of no pods":                            {exitOK, []string{"pods", "-n", empty}},
		"a pod that there is not":                      {exitFailed, []string{"pods", "nobody", "-n", ns}},
		"a format that there is not":                   {exitUsage, []string{"pods", "-o", "xml"}},
		"pods that miss their broker":                  {exitOK, []string{"missing", "-n", ns}},
		"no pods that do":                              {exitOK, []string{"missing", "-n", empty}},
		"pods of all namespaces, which nobody may see": {exitFailed, []string{"missing", "-A", "--as", viewer}},
		"no pods with an outdated broker":              {exitOK, []string{"outdated", "-n", empty}},
		"outdated ones, which nobody may look for":     {exitFailed, []string{"outdated", "-n", ns, "--as", "nobody"}},
		"a pod that misses its broker":                 {exitFailed, []string{"explain", "missed-1-a", "-n", ns}},
		"a pod that wants none":                        {exitOK, []string{"explain", "bare", "-n", refused}},
		"a workload that is as it should be":           {exitOK, []string{"explain", "deployment/paused", "-n", ns}},
		"a workload whose pods are refused":            {exitFailed, []string{"explain", "deployment/refused", "-n", refused}},
		"a workload that can't be tried":               {exitFailed, []string{"explain", "deployment/paused", "-n", ns, "--as", viewer}},
		"a workload that there is not":                 {exitFailed, []string{"explain", "deployment/nobody", "-n", ns}},
		"a kind that makes no pods":                    {exitUsage, []string{"explain", "service/orders", "-n", ns}},
		"manifests whose pods are fine":                {exitOK, []string{"explain", "-f", "testdata/kinds.yaml"}},
		"manifests whose pods are refused":             {exitFailed, []string{"explain", "-f", "testdata/refused.yaml"}},
		"nothing to restart":                           {exitOK, []string{"restart", "--missing", "-n", empty}},
		"nothing that refuses its set":                 {exitOK, []string{"restart", "--refused", "-n", empty}},
		"what would be restarted":                      {exitOK, []string{"restart", "--missing", "-n", ns, "--dry-run"}},
		"a restart that nobody confirms":               {exitFailed, []string{"restart", "--missing", "-n", ns}},
		"a restart of what is paused":                  {exitFailed, []string{"restart", "deploy/paused", "-n", ns}},
		"a restart of pods":                            {exitUsage, []string{"restart", "pod/missed-1-a", "-n", ns}},
		"a preview":                                    {exitOK, []string{"inject", "-f", "testdata/app.yaml"}},
		"manifests that a cluster refuses":             {exitFailed, []string{"inject", "-f", "testdata/refused.yaml", "--from-cluster", "-n", ns}},
		"no manifests to inject":                       {exitUsage, []string{"inject"}},
		"valid manifests":                              {exitOK, []string{"validate", "-f", "testdata/app.yaml"}},
		"invalid ones":                                 {exitFailed, []string{"validate", "-f", "testdata/refused.yaml"}},
		"the version":                                  {exitOK, []string{"version"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			code, stdout, stderr := call(t, "", append(test.args, clusterOf(test.args)...)...)
			if code != test.code || code != exitOK && stdout+stderr == "" {
				t.Errorf("exit code %d, expected %d\n%s%s", code, test.code, stderr, stdout)
			}
		})
	}
}

// clusterOf names the cluster to a command that asks one.
func clusterOf(args []string) []string {
	if args[0] == "version" || args[0] == "validate" {
		return nil
	}
	return []string{"--kubeconfig", kubeconfig}
}
