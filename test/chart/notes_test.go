// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// notes returns the text that an installation prints at its end. It needs no cluster.
func notes(t *testing.T, arguments ...string) string {
	t.Helper()
	helm, err := tool(t.Context(), "helm")
	if err != nil {
		t.Fatal(err)
	}
	nowhere := filepath.Join(t.TempDir(), "kubeconfig")
	installed, err := run(t.Context(), helm, append([]string{
		"install", release, chartPath, "--namespace", releaseNamespace, "--kubeconfig", nowhere, "--dry-run=client", "--output", "json",
	}, arguments...)...)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Info struct {
			Notes string `json:"notes"`
		} `json:"info"`
	}
	if err := json.Unmarshal(installed, &document); err != nil {
		t.Fatal(err)
	}
	return document.Info.Notes
}

func TestNotesSayWhatAnAPIServerNeedsToReachTheWebhook(t *testing.T) {
	const (
		onGKE      = "\n  - a private GKE cluster lets its control plane reach port 10250 of the nodes"
		rule       = ", and\n    needs a firewall rule for TCP "
		onEKS      = ";\n  - where pods have addresses that the control plane cannot route (EKS with Calico or\n    another overlay), install with hostNetwork=true and webhook.port=10260.\n"
		podsFail   = "\nIf creating an annotated pod fails with a timeout, the API server cannot reach the\nwebhook on port "
		policyFail = "\nIf creating an annotated pod is refused for want of an InjectionTemplate, wait until the\n" +
			"operator runs; if writing a profile fails with a timeout, the API server cannot reach the\nwebhook on port "
	)
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"the default port":                {nil, podsFail + "10250:" + onGKE + onEKS},
		"another port":                    {[]string{"--set", "webhook.port=9443"}, podsFail + "9443:" + onGKE + rule + "9443" + onEKS},
		"another port on the host":        {[]string{"--set", "hostNetwork=true,webhook.port=10260"}, podsFail + "10260:" + onGKE + rule + "10260" + onEKS},
		"the default port, and by policy": {[]string{"--set", "injection.mode=policy"}, policyFail + "10250:" + onGKE + onEKS},
	} {
		t.Run(name, func(t *testing.T) {
			if found := notes(t, test.arguments...); !strings.Contains(found, test.want) {
				t.Errorf("found the notes\n%s\nexpected among them\n%s", found, test.want)
			}
		})
	}
}
