// SPDX-License-Identifier: Apache-2.0

//go:build traces && linux

package collector_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
)

const document = "../../docs/traces.md"

func TestTheExampleOfTheDocumentationPrintsASpan(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```sh\n(.*?)```").FindSubmatch(text)
	if example == nil {
		t.Fatal("there is no example")
	}
	dir, err := os.MkdirTemp("", "traces") // short, for the socket's path
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	programs := filepath.Join(dir, "bin")
	build := exec.Command("go", "build", "-o", programs+"/", "../../cmd/broker", "../../cmd/crypto-broker")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	shell := exec.CommandContext(t.Context(), "bash", "-eu", "-o", "pipefail", "-c", string(example[1]))
	shell.Dir, shell.Env = dir, []string{"PATH=" + programs + ":" + os.Getenv("PATH"), "HOME=" + dir}
	var complaints bytes.Buffer
	shell.Stderr = &complaints
	output, err := shell.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, complaints.Bytes())
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	var span struct {
		Name       string
		Attributes []struct{ Key string }
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &span); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if !strings.HasSuffix(span.Name, "/HashData") || !bytes.Contains(text, []byte("`"+span.Name+"`")) {
		t.Errorf("the span is %s", span.Name)
	}
	for _, a := range span.Attributes {
		if !bytes.Contains(text, []byte("`"+a.Key+"`")) {
			t.Errorf("the documentation does not name %s", a.Key)
		}
	}
}

func TestTheDocumentationNamesEveryFlagAndItsVariable(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range tracing.NewConfig().Variables() {
		if v.Flag != "" && !bytes.Contains(text, []byte("`--"+v.Flag+"`")) {
			t.Errorf("it does not name --%s", v.Flag)
		}
		// Variables whose names differ only in the middle are listed by their beginnings and ends.
		_, end, exporter := strings.Cut(v.Name, "OTEL_EXPORTER_OTLP")
		named := bytes.Contains(text, []byte(v.Name))
		for _, short := range []string{"…" + end, "…" + strings.TrimPrefix(end, "_TRACES")} {
			named = named || (exporter && bytes.Contains(text, []byte("`"+short+"`")))
		}
		if strings.HasSuffix(v.Name, "_LIMIT") || strings.HasPrefix(v.Name, "OTEL_BSP_") {
			continue // the page names these variables together
		}
		if !named {
			t.Errorf("it does not name %s", v.Name)
		}
	}
}
