// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package chart

import (
	"strings"
	"testing"
)

func TestASecondReleaseIsRefusedAndTheFirstIsNot(t *testing.T) {
	for sentence, arguments := range map[string][]string{
		"another name":      {"another", "--namespace", releaseNamespace},
		"another namespace": {release, "--namespace", "elsewhere", "--set", "fullnameOverride=another"},
	} {
		t.Run(sentence, func(t *testing.T) {
			arguments := append([]string{"install", arguments[0], chartPath, "--dry-run=server", "--create-namespace", "--set", "crds.install=false"}, arguments[1:]...)
			_, err := server.runHelm(t.Context(), arguments...)
			want := `found the MutatingWebhookConfiguration "crypto-broker-operator" of the release "crypto-broker-operator" in the namespace "crypto-broker-system", expected none: a cluster can have one Crypto Broker Operator`
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("found %v, expected a refusal with %s", err, want)
			}
		})
	}
	if _, err := server.runHelm(t.Context(), "upgrade", release, chartPath, "--dry-run=server"); err != nil {
		t.Errorf("found %v, expected the release itself to be upgraded", err)
	}
}

// The names of the Secrets with the signing keys and with the authority contain the name of the release.
func TestAReleaseKeepsTheNameOfItsObjects(t *testing.T) {
	_, err := server.runHelm(t.Context(), "upgrade", release, chartPath, "--dry-run=server", "--set", "fullnameOverride=another")
	if want := `the name of the objects is "another", expected "crypto-broker-operator" as before`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("found %v, expected a refusal with %s", err, want)
	}
}
