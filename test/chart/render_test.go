// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

const (
	release          = "crypto-broker-operator"
	releaseNamespace = "crypto-broker-system"
)

var (
	repository = filepath.Join("..", "..")
	chartPath  = filepath.Join(repository, "charts", "crypto-broker-operator")
)

// tool is the path of a pinned developer tool, built if it has to be.
func tool(ctx context.Context, name string) (string, error) {
	out, err := run(ctx, filepath.Join(repository, "hack", "tools", "build"), name)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(out)), nil
}

// run returns the standard output of a program. If the program fails, the error has its standard error. The user's own settings of
// Helm have no effect.
func run(ctx context.Context, program string, arguments ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, program, arguments...)
	command.Stdout, command.Stderr = &stdout, &stderr
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "HELM_") })
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(arguments, " "), err, stderr.String())
	}
	return stdout.Bytes(), nil
}

// helmTemplate renders the objects that an installation of the chart creates, with further arguments for helm template. templateAll
// also has the objects of helm test.
func helmTemplate(ctx context.Context, arguments ...string) ([]byte, error) {
	return templateAll(ctx, append([]string{"--skip-tests"}, arguments...)...)
}

func templateAll(ctx context.Context, arguments ...string) ([]byte, error) {
	return renderAs(ctx, release, releaseNamespace, arguments...)
}

// renderAs does the same for a release of another name in another namespace.
func renderAs(ctx context.Context, name, namespace string, arguments ...string) ([]byte, error) {
	helm, err := tool(ctx, "helm")
	if err != nil {
		return nil, err
	}
	return run(ctx, helm, append([]string{"template", name, chartPath, "--namespace", namespace}, arguments...)...)
}

func mustTemplate(t *testing.T, arguments ...string) []byte {
	t.Helper()
	rendered, err := helmTemplate(t.Context(), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

// renderChart is template, parsed.
func renderChart(t *testing.T, arguments ...string) []*unstructured.Unstructured {
	t.Helper()
	return parse(t, mustTemplate(t, arguments...))
}

// kustomize builds a folder of config.
func kustomize(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	program, err := tool(t.Context(), "kustomize")
	if err != nil {
		t.Fatal(err)
	}
	built, err := run(t.Context(), program, "build", filepath.Join(repository, "config", folder))
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, built)
}

// parse reads documents of YAML strictly: a key that is there twice fails.
func parse(t *testing.T, documents []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(documents)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := sigsyaml.UnmarshalStrict(document, &object.Object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// identity identifies an object.
func identity(object *unstructured.Unstructured) string {
	name := object.GetName()
	if namespace := object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return object.GetKind() + " " + name
}

// find returns the only object of a kind and name, converted to a type.
func find[T any](t *testing.T, objects []*unstructured.Unstructured, kind, name string) *T {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			typed := new(T)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
				t.Fatalf("%s: %v", identity(object), err)
			}
			return typed
		}
	}
	t.Fatalf("found no %s %s among the rendered objects", kind, name)
	return nil
}

// everySwitchOn are arguments that render all objects of the chart.
func everySwitchOn() []string {
	return []string{"--values", filepath.Join("testdata", "everything.yaml")}
}

// appVersion is the version that the chart installs unless a tag is given.
func appVersion(t *testing.T) string {
	t.Helper()
	return readMetadata(t).AppVersion
}

// chartMetadata has the fields of Chart.yaml that the tests read.
type chartMetadata struct {
	AppVersion  string `json:"appVersion"`
	KubeVersion string `json:"kubeVersion"`
}

func readMetadata(t *testing.T) (found chartMetadata) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(chartPath, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := sigsyaml.Unmarshal(content, &found); err != nil {
		t.Fatal(err)
	}
	return found
}

func mustJSON(t *testing.T, object any) []byte {
	t.Helper()
	encoded, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}
