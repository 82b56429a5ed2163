// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/annotation"
)

// ChartTemplate returns the file of the chart with the expressions of the policies about
// annotations of pods. It has three templates of Helm, which are lists in YAML: variables of both
// policies that inject, the validations that refuse, and a variable with arguments of the broker.
//
// The variables and the validations use names that the chart defines: annotations,
// initContainers, names, hostNetwork, sharesProcesses, podResources, callers and found.
func ChartTemplate() string {
	var file strings.Builder
	file.WriteString("{{/*\nSPDX-License-Identifier: Apache-2.0\n" +
		"Made from the table in webhook/injection/pod_options.go by hack/generate/annotations. Do not edit.\n*/}}\n")
	section := func(name string, write func()) {
		fmt.Fprintf(&file, "{{- define \"crypto-broker-operator.injection.%s\" -}}\n", name)
		write()
		file.WriteString("{{- end }}\n")
	}
	section("annotationVariables", func() {
		for _, row := range annotationsRead {
			writeVariable(&file, "asked"+row.celName(), row.celAsked())
			writeVariable(&file, "usable"+row.celName(), fmt.Sprintf("variables.asked%s.filter(a, [variables.annotations[a]].all(value,\n%s))", row.celName(), row.values.CEL))
		}
		writeVariable(&file, "unknown", celUnknown())
		for _, row := range annotationsRead {
			for _, variable := range row.variables {
				writeVariable(&file, variable.name, variable.expression)
			}
		}
	})
	section("annotationRefusals", func() {
		writeField(&file, "- expression", "size(variables.unknown) == 0")
		writeField(&file, "  messageExpression", "'metadata.annotations[' + variables.unknown[0] + ']: found an unknown annotation; ' +\n"+annotation.CELString(knownAnnotations()))
		for _, row := range annotationsRead {
			if row.values.Expected != "" {
				row.writeValidation(&file, podRefusal{expected: row.values.Expected, applies: fmt.Sprintf("!(annotation in variables.usable%s)", row.celName())})
			}
		}
		for _, row := range annotationsRead {
			for _, refusal := range row.refusals {
				row.writeValidation(&file, refusal)
			}
		}
	})
	section("annotationArguments", func() { writeVariable(&file, "annotationArguments", celArguments()) })
	return file.String()
}

// DocumentationTable returns the table of annotations in docs/pods.md, from its head
// to its last row.
func DocumentationTable() string {
	var table strings.Builder
	table.WriteString("| annotation | example | what it does | without it |\n|---|---|---|---|\n")
	for i, name := range annotationNames() {
		row := annotationsRead[i]
		fmt.Fprintf(&table, "| `%s` | `%s` | %s | %s |\n", name, row.example, row.effect, row.without)
	}
	return table.String()
}

// celName returns the name of the annotation in names of variables: CpuLimit for cpu-limit.
func (a podAnnotation) celName() string {
	var name strings.Builder
	for word := range strings.FieldsFuncSeq(strings.TrimPrefix(a.name, contract.AnnotationPrefix), func(r rune) bool { return r == '-' || r == '.' }) {
		name.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	if a.isPrefix() {
		name.WriteString("OfContainer")
	}
	return name.String()
}

// celAsked is the list of the pod's annotations of this row.
func (a podAnnotation) celAsked() string {
	if a.isPrefix() {
		return fmt.Sprintf("variables.annotations.filter(a, a.startsWith(%s))", annotation.CELString(a.name))
	}
	return fmt.Sprintf("[%s].filter(a, a in variables.annotations)", annotation.CELString(a.name))
}

// celArguments are the arguments of the broker that annotations may change, as
// [rendering.optionArguments] has them.
func celArguments() string {
	var pairs []string
	for _, row := range annotationsRead {
		if row.argument == "" {
			continue
		}
		fallback := row.celFromTemplate
		if fallback == "" {
			fallback = "''"
		}
		pairs = append(pairs, fmt.Sprintf("[%s, variables.annotations[?%s].orValue(%s)]", annotation.CELString(contract.Argument(row.argument, "")), annotation.CELString(row.name), fallback))
	}
	return "[" + strings.Join(pairs, ",\n") + "]\n.filter(a, a[1] != '').map(a, a[0] + a[1])"
}

// celValue is the value of an annotation that the pod has.
func celValue(name string) string {
	return "variables.annotations[" + annotation.CELString(name) + "]"
}

// celItems are the items of an annotation of the pod. It has at most one item more than a list
// may have, which is enough to refuse the list.
func celItems(name string) string {
	return fmt.Sprintf("%s.split(',', %d).map(n, n.trim())", celValue(name), annotation.MaxItems+1)
}

// celUnknown is the list of the pod's annotations of this project without a row.
func celUnknown() string {
	conditions := []string{"a.startsWith(" + annotation.CELString(contract.AnnotationPrefix) + ")", "!(a in " + annotation.CELList(annotationsWritten) + ")"}
	for _, row := range annotationsRead {
		conditions = append(conditions, fmt.Sprintf("!(a in variables.asked%s)", row.celName()))
	}
	return "variables.annotations.filter(a, " + strings.Join(conditions, " &&\n") + ")"
}

// writeValidation writes the validation that refuses annotations of a row.
func (a podAnnotation) writeValidation(file *strings.Builder, refusal podRefusal) {
	asked := "variables.asked" + a.celName()
	writeField(file, "- expression", fmt.Sprintf("!%s.exists(annotation, %s)", asked, refusal.applies))
	writeField(file, "  messageExpression", fmt.Sprintf("%s.filter(annotation, %s).map(annotation,\n'metadata.annotations[' + annotation + ']: ' + variables.found[annotation] +\n%s)[0]",
		asked, refusal.applies, refusal.celSentence()))
}

// celSentence is the end of the sentence, after the found value.
func (r podRefusal) celSentence() string {
	texts := strings.Split(", expected "+r.expected, "%s")
	sentence := annotation.CELString(texts[0])
	for i, argument := range r.arguments {
		sentence += " + " + argument
		if texts[i+1] != "" {
			sentence += " + " + annotation.CELString(texts[i+1])
		}
	}
	return sentence
}

func writeVariable(file *strings.Builder, name, expression string) {
	fmt.Fprintf(file, "- name: %s\n", name)
	writeField(file, "  expression", expression)
}

// writeField writes a field of an item. YAML joins the lines of its value with spaces.
func writeField(file *strings.Builder, name, value string) {
	fmt.Fprintf(file, "%s: >-\n    %s\n", name, strings.ReplaceAll(value, "\n", "\n    "))
}

// celAmountVariables are the amounts that the policies put into the container, by
// annotations without their prefix, and the resources of which more would be requested
// than the limit allows.
var celAmountVariables = []celVariable{
	{"amounts", fmt.Sprintf("(variables.usableCpuRequest + variables.usableCpuLimit + variables.usableMemoryRequest + variables.usableMemoryLimit)\n.map(a, a.substring(%d))",
		len(contract.AnnotationPrefix))},
	{"exceeded", "['cpu', 'memory'].filter(r, variables.amounts.exists(a, a.startsWith(r)) && [['request', 'limit'].map(k, quantity(r + '-' + k in variables.amounts\n" +
		"? variables.annotations[" + annotation.CELString(contract.AnnotationPrefix) + " + r + '-' + k]\n" +
		": string(params.spec.container.?resources[?(k + 's')][?r].orValue('0'))))].exists(q,\n" +
		"sign(q[1]) > 0 && q[0].isGreaterThan(q[1])))"},
}

// celPortVariables are the status port of the broker, the containers that declare it,
// and whether the broker opens it.
var celPortVariables = []celVariable{
	{"statusPort", "size(variables.usableMetricsPort) == 0 ? int(params.spec.statusPort) : int(" + celValue(contract.MetricsPortAnnotation) + ")"},
	{"declarers", "variables.initContainers.filter(c, c.name != " + annotation.CELString(contract.BrokerContainer) + " && c.?ports.orValue([]).exists(p,\n" + celTakesPort + ")).map(c, c.name) +\n" +
		"object.spec.containers.filter(c, c.?ports.orValue([]).exists(p,\n" + celTakesPort + ")).map(c, c.name)"},
	{"opensPort", "!variables.hostNetwork && size(variables.declarers) == 0"},
}

const celTakesPort = "int(p.containerPort) == variables.statusPort && !(p.?protocol.orValue('TCP') in ['UDP', 'SCTP'])"

// celSessionVariables are the port of the session gateway, the port of the application, the
// containers that declare the port of the gateway, and the profile of the sessions.
var celSessionVariables = []celVariable{
	{"sessionPorts", "size(variables.usableSessionGateway) == 0 ? [] : " + celValue(contract.SessionGatewayAnnotation) + ".split(':', 3).map(p, int(p))"},
	{"sessionDeclarers", "size(variables.sessionPorts) == 0 ? [] : variables.initContainers.filter(c, c.name != " + annotation.CELString(contract.BrokerContainer) + " && c.?ports.orValue([]).exists(p,\n" + celTakesSessionPort + ")).map(c, c.name) +\n" +
		"object.spec.containers.filter(c, c.?ports.orValue([]).exists(p,\n" + celTakesSessionPort + ")).map(c, c.name)"},
	{"sessionProfile", "size(variables.usableSessionProfile) == 0 ? " + annotation.CELString(contract.DefaultSessionProfile) + " : " + celValue(contract.SessionProfileAnnotation)},
}

const celTakesSessionPort = "int(p.containerPort) == variables.sessionPorts[0] && !(p.?protocol.orValue('TCP') in ['UDP', 'SCTP'])"

// celImageVariables are the images that the operator allows, and the broker's image.
var celImageVariables = []celVariable{
	{"images", "[string(params.spec.container.image)] + params.spec.?allowedImages.orValue([]).map(i, string(i))"},
	{"image", "size(variables.askedImage) == 0 || !(" + celValue(contract.ImageAnnotation) + " in variables.images) ? variables.images[0]\n: " +
		celValue(contract.ImageAnnotation)},
}

// celVariable is a variable of a policy.
type celVariable struct{ name, expression string }
