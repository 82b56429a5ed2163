// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/accesspolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/regopolicy"
)

func TestTheAccessPoliciesInTheDocumentationCompile(t *testing.T) {
	const example = "examples/two-nations/policy-a.yaml"
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	policies := map[string]string{example: string(text)}
	for file, page := range documents(t) {
		for _, block := range fenced.FindAllStringSubmatch(page, -1) {
			if strings.Contains(block[1], "\nkind: "+accesspolicy.Kind+"\n") {
				policies[file+": "+block[1]] = block[1]
			}
		}
	}
	if len(policies) < 3 {
		t.Errorf("found %d access policies, expected the policy of the example, and some in CEL and in Rego", len(policies))
	}
	for where, text := range policies {
		if _, err := accesspolicy.Parse("policy.yaml", []byte(text), regopolicy.Compile); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
}
