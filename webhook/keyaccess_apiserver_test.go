// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package webhook

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/regocheck"
)

func TestTheAPIServerRefusesAnAccessPolicyWithFieldAndColumn(t *testing.T) {
	startOperator(t)
	policy := func(when string) *v1alpha1.KeyAccessPolicy {
		return &v1alpha1.KeyAccessPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "secret"}, Spec: v1alpha1.KeyAccessPolicySpec{
			Allow: []v1alpha1.KeyAccessRule{{Name: "cleared", When: v1alpha1.KeyAccessExpression(when)}},
		}}
	}
	if err := admin.Create(t.Context(), policy("caller.claims.clearance >= 3"), client.DryRunAll); err != nil {
		t.Errorf("found %v for a good policy", err)
	}
	err := admin.Create(t.Context(), policy("caller.bound && nobody"), client.DryRunAll)
	if want := "spec.allow[0].when: Invalid value: line 1, column 17 of the expression: undeclared reference to 'nobody'"; !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("found %v, expected %s", err, want)
	}
	peer := &v1alpha1.KeyAccessPeer{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "b"}, Spec: v1alpha1.KeyAccessPeerSpec{URL: "https://b.example", Authorities: "none"}}
	err = admin.Create(t.Context(), peer, client.DryRunAll)
	if want := "spec.authorities: Invalid value: found no certificate, expected PEM"; !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("found %v, expected %s", err, want)
	}
}

// directoryOfASocket returns a directory whose path is short enough for a socket.
func directoryOfASocket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rego")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "socket")
}

// startRegoCheck runs the command rego-check of a program, and returns a function that ends it.
func startRegoCheck(t *testing.T, program, dir string) (stop func()) {
	t.Helper()
	gateway := exec.CommandContext(t.Context(), program, "rego-check", "--socket-dir", dir)
	gateway.Stderr = t.Output()
	if err := gateway.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		if err := errors.Join(gateway.Process.Signal(syscall.SIGTERM), gateway.Wait()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	eventually(t, "the socket is there", func() error {
		_, err := os.Stat(filepath.Join(dir, contract.SocketFile))
		return err
	})
	return stop
}

func TestTheAPIServerRefusesAPolicyInRegoThatTheGatewayRefuses(t *testing.T) {
	dir := directoryOfASocket(t)
	program := filepath.Join(t.TempDir(), "gateway")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../cmd/gateway").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	startOperatorWith(t, Options{Template: testTemplate(), KeyAccessModules: regocheck.NewClient(dir).Check})
	apply := func(name, rules string) error {
		return admin.Create(t.Context(), &v1alpha1.KeyAccessPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: name},
			Spec:       v1alpha1.KeyAccessPolicySpec{AppliesTo: "caller.bound", Rego: "package keyaccess\n\n" + rules},
		}, client.DryRunAll)
	}
	const good = "allow if input.caller.claims.clearance >= 3"
	away := func() {
		t.Helper()
		err := apply("good", good)
		if want := "spec.rego: the module was not checked, try again: gateway rego-check, which checks modules for the operator, did not answer: dial unix"; !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("found %v, expected %s", err, want)
		}
	}
	away()
	stop := startRegoCheck(t, program, dir)
	if err := apply("good", good); err != nil {
		t.Errorf("found %v for a good policy", err)
	}
	err := apply("wrong", "allow if {\n  input.caller.isuer == \"x\"\n}")
	if want := "spec.rego: Invalid value: line 4, column 3 of the module: undefined ref: input.caller.isuer"; !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("found %v, expected %s", err, want)
	}
	// Without a time limit, the compiler would take years for it.
	err = apply("slow", "allow if "+strings.Repeat("count([1|", 60)+"1"+strings.Repeat("])==1", 60))
	if want := "line 1, column 1 of the module: it takes longer than 2.5s to compile"; !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("found %v, expected %s", err, want)
	}
	if err := apply("good", good); err != nil {
		t.Errorf("found %v for a good policy after one that takes long", err)
	}
	stop()
	away()
}

func TestTheAPIServerRefusesAPolicyInRegoWhereItIsOff(t *testing.T) {
	startOperator(t)
	err := admin.Create(t.Context(), &v1alpha1.KeyAccessPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "rego"}, Spec: v1alpha1.KeyAccessPolicySpec{Rego: "package keyaccess\nallow := true"},
	}, client.DryRunAll)
	if want := "spec.rego: Invalid value: found a module in Rego, which is off: the chart's value keyAccess.rego turns it on"; !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("found %v, expected %s", err, want)
	}
}
