// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
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
		"a list of pods, some of which miss their broker": {program.ExitOK, []string{"pods", "-n", ns}},
		"a list of no pods":                            {program.ExitOK, []string{"pods", "-n", empty}},
		"a pod that there is not":                      {program.ExitFailed, []string{"pods", "nobody", "-n", ns}},
		"a format that there is not":                   {program.ExitUsage, []string{"pods", "-o", "xml"}},
		"pods that miss their broker":                  {program.ExitOK, []string{"missing", "-n", ns}},
		"no pods that do":                              {program.ExitOK, []string{"missing", "-n", empty}},
		"pods of all namespaces, which nobody may see": {program.ExitFailed, []string{"missing", "-A", "--as", viewer}},
		"no pods with an outdated broker":              {program.ExitOK, []string{"outdated", "-n", empty}},
		"outdated ones, which nobody may look for":     {program.ExitFailed, []string{"outdated", "-n", ns, "--as", "nobody"}},
		"a pod that misses its broker":                 {program.ExitFailed, []string{"explain", "missed-1-a", "-n", ns}},
		"a pod that wants none":                        {program.ExitOK, []string{"explain", "bare", "-n", refused}},
		"a workload that is as it should be":           {program.ExitOK, []string{"explain", "deployment/paused", "-n", ns}},
		"a workload whose pods are refused":            {program.ExitFailed, []string{"explain", "deployment/refused", "-n", refused}},
		"a workload that can't be tried":               {program.ExitFailed, []string{"explain", "deployment/paused", "-n", ns, "--as", viewer}},
		"a workload that there is not":                 {program.ExitFailed, []string{"explain", "deployment/nobody", "-n", ns}},
		"a kind that makes no pods":                    {program.ExitUsage, []string{"explain", "service/orders", "-n", ns}},
		"manifests whose pods are fine":                {program.ExitOK, []string{"explain", "-f", "testdata/kinds.yaml"}},
		"manifests whose pods are refused":             {program.ExitFailed, []string{"explain", "-f", "testdata/refused.yaml"}},
		"nothing to restart":                           {program.ExitOK, []string{"restart", "--missing", "-n", empty}},
		"nothing that refuses its set":                 {program.ExitOK, []string{"restart", "--refused", "-n", empty}},
		"what would be restarted":                      {program.ExitOK, []string{"restart", "--missing", "-n", ns, "--dry-run"}},
		"a restart that nobody confirms":               {program.ExitFailed, []string{"restart", "--missing", "-n", ns}},
		"a restart of what is paused":                  {program.ExitFailed, []string{"restart", "deploy/paused", "-n", ns}},
		"a restart of pods":                            {program.ExitUsage, []string{"restart", "pod/missed-1-a", "-n", ns}},
		"a preview":                                    {program.ExitOK, []string{"inject", "-f", "testdata/app.yaml"}},
		"manifests that a cluster refuses":             {program.ExitFailed, []string{"inject", "-f", "testdata/refused.yaml", "--from-cluster", "-n", ns}},
		"no manifests to inject":                       {program.ExitUsage, []string{"inject"}},
		"valid manifests":                              {program.ExitOK, []string{"validate", "-f", "testdata/app.yaml"}},
		"invalid ones":                                 {program.ExitFailed, []string{"validate", "-f", "testdata/refused.yaml"}},
		"what manifests without a profile break":       {program.ExitFailed, []string{"what-if", "-f", "testdata/app.yaml", "-n", empty}},
		"what an invalid profile breaks":               {program.ExitFailed, []string{"what-if", "-f", "testdata/refused.yaml", "-n", ns}},
		"what no file breaks":                          {program.ExitUsage, []string{"what-if", "-n", ns}},
		"the cryptography of no broker":                {program.ExitOK, []string{"inventory", "-n", empty}},
		"the use of what there is not":                 {program.ExitUsage, []string{"inventory", "--uses", "rot13", "-n", ns}},
		"an inventory that nobody may make":            {program.ExitFailed, []string{"inventory", "-n", ns, "--as", "nobody"}},
		"the version":                                  {program.ExitOK, []string{"version"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			code, stdout, stderr := call(t, "", append(test.args, clusterOf(test.args)...)...)
			if code != test.code || code != program.ExitOK && stdout+stderr == "" {
				t.Errorf("exit code %d, expected %d\n%s%s", code, test.code, stderr, stdout)
			}
		})
	}
}

// clusterOf returns the flags that name the cluster, for commands that ask a cluster.
func clusterOf(args []string) []string {
	if args[0] == "version" || args[0] == "validate" {
		return nil
	}
	return []string{"--kubeconfig", kubeconfig}
}
