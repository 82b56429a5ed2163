// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// brokenCalls is the output of what-if with -o json.
type brokenCalls struct {
	Findings []struct {
		Workload, Container, Profile, Operation, Algorithm, Effect, Why string
		Pods                                                            int
		Calls                                                           int64
	}
	Unknown []struct{ Pod, Why string }
}

func TestTheCallsOfAnApplicationThatAChangeWouldBreakAreToldBeforeIt(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	createProfile(t, namespace, "sha3-512")
	must(t, shared.client.Create(t.Context(), appDeployment(namespace, "app", 1, nil)))
	pod := readyPods(t, namespace, "app=app", 1)[0]
	made := awaitCalls(t, &pod, statsPort, nil, 20)

	manifest := filepath.Join(t.TempDir(), "profile.yaml")
	ask := func(code int, api string) (found brokenCalls) {
		t.Helper()
		text := fmt.Sprintf("apiVersion: cryptobroker.io/v1alpha1\nkind: CryptoProfile\nmetadata: {name: default}\nspec: {profileName: Default, api: %s}\n", api)
		must(t, os.WriteFile(manifest, []byte(text), 0o600))
		output := pluginThatEndsWith(t)(code, "what-if", "-f", manifest, "-n", namespace, "-o", "json")
		if err := json.Unmarshal([]byte(output), &found); err != nil || len(found.Unknown) > 0 {
			t.Fatalf("%v: %s", err, output)
		}
		return found
	}
	for api, effect := range map[string]string{
		"{hashData: {hashAlg: sha-512}}":                                            "changed",
		"{encryptData: {encryptAlg: aes-gcm, keySize: 256, nonceStrategy: random}}": "refused",
	} {
		found := ask(3, api).Findings
		if len(found) != 1 || found[0].Workload != "deployment/app" || found[0].Container != "app" || found[0].Profile != "Default" || found[0].Operation != "HashData" ||
			found[0].Algorithm != "sha3-512" || found[0].Effect != effect || found[0].Pods != 1 || found[0].Calls < made.Calls-made.Failed {
			t.Errorf("%s: found %+v, expected at least %d calls", api, found, made.Calls-made.Failed)
		}
	}
	if found := ask(0, "{hashData: {hashAlg: sha3-512}, encryptData: {encryptAlg: aes-gcm, keySize: 256, nonceStrategy: random}}").Findings; len(found) != 0 {
		t.Errorf("a change that offers more: found %+v", found)
	}
}
