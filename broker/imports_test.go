// SPDX-License-Identifier: Apache-2.0

// Package broker_test has tests about all packages below broker.
package broker_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// module is the module all packages are in.
const module = "github.com/crypto-broker/crypto-broker-operator"

// TestTheDataPlaneKnowsNothingOfKubernetes asks the Go toolchain for everything
// that the broker and the command line are built from.
func TestTheDataPlaneKnowsNothingOfKubernetes(t *testing.T) {
	roots := []string{module + "/broker/...", module + "/cmd/broker/...", module + "/cmd/crypto-broker/..."}
	// A pattern that matches nothing is a warning, which goes to standard error.
	list := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps", "-test", "-f", "{{.ImportPath}}"}, roots...)...)
	var complaints strings.Builder
	list.Stderr = &complaints
	output, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, complaints.String())
	}
	packages := strings.Fields(string(output))
	seen := map[string]bool{}
	for _, name := range packages {
		seen[name] = true
		if strings.HasPrefix(name, "k8s.io/") || strings.HasPrefix(name, "sigs.k8s.io/") {
			t.Errorf("the data plane depends on %s", name)
		}
	}
	for _, root := range []string{module + "/broker/server", module + "/cmd/broker", module + "/cmd/crypto-broker"} {
		if !seen[root] {
			t.Errorf("%s was not examined", root)
		}
	}
}

// TestOrdinaryProgramsAreStatic checks that only the programs of "make build-openssl" and "make build-pkcs11" have packages that
// load C libraries.
func TestOrdinaryProgramsAreStatic(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", module+"/cmd/...")
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := false
	for _, name := range strings.Fields(string(output)) {
		seen = seen || name == module+"/broker/tlsprovider"
		if name == "runtime/cgo" || strings.HasPrefix(name, "github.com/ebitengine/purego") || strings.HasPrefix(name, module+"/clients/openssl") {
			t.Errorf("the programs depend on %s", name)
		}
	}
	if !seen {
		t.Error("broker/tlsprovider was not examined")
	}
}

// TestTheBrokerHasNoCommandLineLibrary checks that the broker does not have packages that only the command line needs.
func TestTheBrokerHasNoCommandLineLibrary(t *testing.T) {
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+"/broker/...", module+"/cmd/broker/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, name := range strings.Fields(string(output)) {
		if strings.HasPrefix(name, "github.com/spf13/cobra") {
			t.Errorf("the broker depends on %s", name)
		}
	}
}
