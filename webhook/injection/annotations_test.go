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

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
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

func TestProfilesThatCouldNotBeReadAreNoSnapshot(t *testing.T) {
	pod, _, err := Inject(fixture.PodWith(), "shop", []byte{}, testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	if snapshot, found := pod.Annotations[contract.ProfilesSnapshotAnnotation]; found {
		t.Errorf("found the snapshot %q, expected none", snapshot)
	}
}

// The operator adds its volume to a list of the owner, which may be as long as annotations can be.
func TestALongListOfVolumesThatMayBeLostLeavesNoRoomForTheSnapshot(t *testing.T) {
	profiles := []byte(fixture.ProfilesOfShop + strings.Repeat("#", maxSnapshotSize-1000))
	pod := fixture.PodWith(func(pod *corev1.Pod) { pod.Annotations[evictableAnnotation] = strings.Repeat("v", 250<<10) })
	for range 2 {
		var err error
		if pod, _, err = Inject(pod, "shop", profiles, testTemplate()); err != nil {
			t.Fatal(err)
		}
		size := 0
		for key, value := range pod.Annotations {
			size += len(key) + len(value)
		}
		if size > maxAnnotationsSize {
			t.Errorf("the annotations take %d bytes, expected at most %d", size, maxAnnotationsSize)
		}
	}
}
