// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/annotation"
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
	page, err := os.ReadFile("../../docs/pods.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "\n\n"+DocumentationTable()+"\n") {
		t.Errorf("docs/pods.md has another table of annotations than make generate writes:\n%s", DocumentationTable())
	}
}

func TestThePoliciesOfTheChartHaveTheAnnotationsOfTheTable(t *testing.T) {
	template, err := os.ReadFile("../../charts/crypto-broker-operator/templates/injection/_annotations.tpl")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ChartTemplate(), string(template)); diff != "" {
		t.Errorf("the chart has other expressions than make generate writes (-want +found):\n%s", diff)
	}
}

func TestEveryAnnotationIsWholeInTheTable(t *testing.T) {
	for _, row := range annotationsRead {
		t.Run(row.name, func(t *testing.T) {
			if row.example == "" || row.effect == "" || row.without == "" {
				t.Error("found an empty cell of the documentation")
			}
			if row.values.Fits == nil || row.values.CEL == "" {
				t.Error("found values without a condition in Go or in CEL")
			}
			if row.values.Expected == "" && len(row.refusals) == 0 {
				t.Error("found no sentence that refuses a value")
			}
			if (row.read == nil) != (row.argument != "") {
				t.Error("expected either an argument of the broker or a function that reads the value")
			}
			if (row.fromTemplate == nil) != (row.celFromTemplate == "") {
				t.Error("found what the template says in Go or in CEL alone")
			}
			for _, refusal := range row.refusals {
				if strings.Count(refusal.expected, "%s") != len(refusal.arguments) {
					t.Errorf("found %d arguments of the sentence %q", len(refusal.arguments), refusal.expected)
				}
			}
		})
	}
}

func TestEveryExampleInTheTableOfAnnotationsIsAcceptedAlone(t *testing.T) {
	for _, row := range documentedAnnotations(t) {
		t.Run(row.name, func(t *testing.T) {
			two := fixture.Second(corev1.Container{Name: "side"})
			pod := fixture.PodWith(two, fixture.Annotated(strings.ReplaceAll(row.name, "<container>", "app"), row.example))
			plain := fixture.PodWith(two)
			if strings.HasPrefix(row.name, "session-") && row.name != "session-gateway" { // these annotations need a session gateway
				const gateway = "8443:8080"
				pod.Annotations[contract.SessionGatewayAnnotation] = gateway
				plain = fixture.PodWith(two, fixture.Annotated("session-gateway", gateway))
			}
			if row.name == "traces-ratio" { // this annotation needs a sampler by ratio
				const sampler = "traceidratio"
				pod.Annotations[contract.TracesSamplerAnnotation] = sampler
				plain = fixture.PodWith(two, fixture.Annotated("traces-sampler", sampler))
			}
			injected, _, err := Inject(pod, "shop", []byte(fixture.ProfilesOfShop), testTemplate())
			if err != nil {
				t.Fatal(err)
			}
			plain, _, err = Inject(plain, "shop", []byte(fixture.ProfilesOfShop), testTemplate())
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
	if annotation.MinMemory != "32Mi" {
		t.Errorf("docs/pods.md says that a broker gets at least 32Mi, the code %s", annotation.MinMemory)
	}
}
