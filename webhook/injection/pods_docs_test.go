// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// documented is a row of the table of annotations in docs/pods.md.
type documented struct{ name, example, without string }

func documentedAnnotations(t *testing.T) (rows []documented) {
	t.Helper()
	text, err := os.ReadFile("../../docs/pods.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| annotation | example |")
	if !found {
		t.Fatal("docs/pods.md has no table of annotations")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\| [^|]+ \\| ([^|]+) \\|$")
	for _, match := range row.FindAllStringSubmatch(table, -1) {
		rows = append(rows, documented{match[1], match[2], match[3]})
	}
	if lines := strings.Count(strings.TrimSpace(table), "\n"); len(rows) != lines-1 {
		t.Fatalf("of the table's %d rows %d have an annotation and an example", lines-1, len(rows))
	}
	return rows
}

func TestTheDocumentationHasEveryAnnotationThatIsReadAndNoOther(t *testing.T) {
	var read, documented []string
	for _, annotation := range annotationsRead {
		read = append(read, annotation.name)
		if annotation.name == contract.AllowedProfilesAnnotation {
			read = append(read, contract.ContainerProfilesPrefix+"<container>")
		}
	}
	for _, row := range documentedAnnotations(t) {
		documented = append(documented, contract.AnnotationPrefix+row.name)
	}
	if diff := cmp.Diff(read, documented); diff != "" {
		t.Errorf("docs/pods.md and the code have other annotations (-read +documented):\n%s", diff)
	}
}

func TestEveryExampleInTheTableOfAnnotationsIsAcceptedAlone(t *testing.T) {
	for _, row := range documentedAnnotations(t) {
		t.Run(row.name, func(t *testing.T) {
			two := fixture.Second(corev1.Container{Name: "side"})
			pod := fixture.PodWith(two, fixture.Annotated(strings.ReplaceAll(row.name, "<container>", "app"), row.example))
			injected, _, err := Inject(pod, "shop", []byte(fixture.ProfilesOfShop), testTemplate())
			if err != nil {
				t.Fatal(err)
			}
			plain, _, err := Inject(fixture.PodWith(two), "shop", []byte(fixture.ProfilesOfShop), testTemplate())
			if err != nil {
				t.Fatal(err)
			}
			if cmp.Equal(injected.Spec, plain.Spec) && row.name != "inject" {
				t.Error("the example changes nothing")
			}
		})
	}
}

func TestTheDefaultsInTheTableOfAnnotationsAreThoseOfTheCode(t *testing.T) {
	for _, row := range documentedAnnotations(t) {
		if row.name == "socket-path" && row.without != "`"+contract.SocketDir+"`" {
			t.Errorf("docs/pods.md has %s for the socket, expected %s", row.without, contract.SocketDir)
		}
	}
	if minMemory.Cmp(resource.MustParse("32Mi")) != 0 {
		t.Errorf("docs/pods.md says that a broker gets at least 32Mi, the code %s", &minMemory)
	}
}
