// SPDX-License-Identifier: Apache-2.0

package regopolicy

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// module is the module that all packages are in.
const module = "github.com/crypto-broker/crypto-broker-operator"

// TestOnlyTheGatewayHasRego asks the Go toolchain which programs are built with OPA.
func TestOnlyTheGatewayHasRego(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{if eq .Name "main"}}{{.ImportPath}} {{join .Deps " "}}{{end}}`, module+"/cmd/...")
	output, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var with, without []string
	for line := range strings.Lines(string(output)) {
		program, dependencies, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.Contains(dependencies, "github.com/open-policy-agent/") {
			with = append(with, program)
		} else {
			without = append(without, program)
		}
	}
	if !slices.Equal(with, []string{module + "/cmd/gateway"}) {
		t.Errorf("found OPA in %q, expected it in the gateway alone", with)
	}
	for _, program := range []string{"operator", "broker", "crypto-broker", "kubectl-crypto_broker"} {
		if !slices.Contains(without, module+"/cmd/"+program) {
			t.Errorf("%s was not examined", program)
		}
	}
}
