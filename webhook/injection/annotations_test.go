// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// TestEachAnnotationOfTheContractHasARow reads the source of package contract, because constants
// cannot be listed in another way.
func TestEachAnnotationOfTheContractHasARow(t *testing.T) {
	known := slices.Concat(annotationsWritten, []string{contract.AnnotationPrefix, contract.InjectAnnotation})
	for _, row := range annotationsRead {
		known = append(known, row.name)
	}
	file, err := parser.ParseFile(gotoken.NewFileSet(), "../../broker/contract/annotations.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			literal, ok := spec.Values[i].(*ast.BasicLit)
			if !ok || !strings.HasSuffix(name.Name, "Annotation") && !strings.HasSuffix(name.Name, "Prefix") {
				continue
			}
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			if found++; !slices.Contains(known, value) {
				t.Errorf("%s has no row in annotationsRead and is not in annotationsWritten", name.Name)
			}
		}
		return true
	})
	if found < len(annotationsRead) {
		t.Errorf("found %d annotations in the source, expected at least %d", found, len(annotationsRead))
	}
}
