// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package openbao_test

import (
	"crypto"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

const hashOptions = crypto.SHA256

// policyOf returns the policy in the documentation that begins with a comment "# <name>".
func policyOf(t *testing.T, name string) string {
	t.Helper()
	repository, err := environment.Repository()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(repository, "docs", "key-managers.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```hcl\n# "+name+"\n")
	policy, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatalf("docs/key-managers.md has no policy %q", name)
	}
	return policy
}
