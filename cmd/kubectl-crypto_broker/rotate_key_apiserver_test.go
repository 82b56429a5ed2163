// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/effective"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
)

func TestTheSigningKeyIsRotatedAndAllSetsAreSignedWithIt(t *testing.T) {
	c, ns := reconcile(t), uncovered(t)
	create(t, c, hashing(ns, "payments", "", "sha-512"))
	awaitState(t, ns, "cprof/payments", effective.StateServed)
	retired := func() int {
		secret, err := apiServer.CoreV1().Secrets(installation.DefaultNamespace).Get(t.Context(), signingSecret, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(signing.AgeOf(secret).Retired)
	}
	before := retired()
	args := []string{"rotate-key", "--operator-namespace", installation.DefaultNamespace}
	code, stdout, stderr := plugin(t, args...)
	if code != program.ExitFailed || !strings.Contains(stdout, "Replace it? [y/N]") || !strings.Contains(stderr, "nothing was rotated: it was not confirmed") || retired() != before {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	code, stdout, stderr = plugin(t, append(args, "--yes")...)
	if code != program.ExitOK || !strings.Contains(stdout, "The operator has a new key.\n") || !strings.Contains(stdout, " signed with it\nDone. ") || retired() != before+1 {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	user := viewer(t, covered(t))
	if code, _, stderr := plugin(t, append(args, "--yes", "--as", user)...); code != program.ExitFailed || !strings.Contains(stderr, "nothing was rotated: the right to get secrets in namespace crypto-broker-system is missing") {
		t.Errorf("exit code %d, found %q", code, stderr)
	}
	if code, _, stderr := plugin(t, "rotate-key", "--yes", "--operator-namespace", ns); code != program.ExitFailed || !strings.Contains(stderr, "there is no Secret crypto-broker-operator-signing in namespace "+ns) {
		t.Errorf("exit code %d, found %q", code, stderr)
	}
}

func TestARotationThatTheOperatorDoesNotMakeEndsInTime(t *testing.T) {
	in := install(t)
	code, stdout, stderr := plugin(t, "rotate-key", "--yes", "--operator-namespace", in.operator, "--timeout", "2s")
	if code != program.ExitFailed || !strings.Contains(stderr, "has not ended within 2s: the operator has not made a new key") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
}
