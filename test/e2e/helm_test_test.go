// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

func TestHelmTestSaysThatTheWebhooksAnswer(t *testing.T) {
	t.Parallel()
	output, err := shared.helm.Run(t.Context(), "test", environment.Release, "--namespace", environment.Namespace, "--timeout", "2m")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(output, "Phase:          Succeeded") {
		t.Errorf("found\n%s\nexpected the test to succeed", output)
	}
}
