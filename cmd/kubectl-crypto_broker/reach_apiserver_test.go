// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
)

func TestPodsInANamespaceThatIsLeftOutMissNoBroker(t *testing.T) {
	left, in := uncovered(t), uncovered(t)
	makeMissed(t, left, "left", "true")
	makeMissed(t, in, "in", "true")
	label(t, in)

	found, stderr := listed(t, "missing", "-A")
	expect(t, found, "in-1-a missing  deployment/in")
	if stderr != "" {
		t.Errorf("found %q", stderr)
	}
	for command, want := range map[string][]string{
		"missing": nil, "pods": nil, "pods --all": {"left-1-a none  deployment/left"},
	} {
		found, stderr = listed(t, append(strings.Fields(command), "-n", left)...)
		expect(t, found, want...)
		if stderr != "" {
			t.Errorf("%s: found %q", command, stderr)
		}
	}
	if code, stdout, stderr := plugin(t, "pods", "--all", "-o", "wide", "-n", left); code != program.ExitOK || !strings.Contains(stdout, "excluded namespace") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	if code, stdout, stderr := plugin(t, "restart", "--missing", "-n", left, "--yes"); code != program.ExitOK || stdout != "Nothing to restart.\n" {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}

	user := viewer(t, left)
	found, stderr = listed(t, "missing", "-n", left, "--as", user)
	expect(t, found, "left-1-a missing  deployment/left")
	const want = "note: it is not known which namespaces are left out, so a restart may give some of the listed pods no broker: the right to list mutatingwebhookconfigurations is missing (user "
	if stderr != want+user+")\n" {
		t.Errorf("found %q", stderr)
	}
}

func TestPodsMissTheirBrokerWhereAPolicySelectsTheirNamespace(t *testing.T) {
	ns := uncovered(t)
	makeMissed(t, ns, "orders", "true")
	found, _ := listed(t, "missing", "-n", ns)
	expect(t, found)
	if !apiserver.ServesMutatingPolicies(t, apiServerConfig) {
		return // no policy can select the namespace
	}
	injectByPolicy(t, ns)
	found, stderr := listed(t, "missing", "-n", ns)
	expect(t, found, "orders-1-a missing  deployment/orders")
	if stderr != "" {
		t.Errorf("found %q", stderr)
	}
}
