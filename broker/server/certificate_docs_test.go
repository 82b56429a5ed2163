// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

// codeBlock finds the blocks of a document with their languages.
var codeBlock = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```")

func TestTheExampleInTheDocumentationOfSignCertificateWorks(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "operations", "sign-certificate.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string][]string{}
	for _, match := range codeBlock.FindAllStringSubmatch(string(text), -1) {
		blocks[match[1]] = append(blocks[match[1]], match[2])
	}
	if len(blocks["sh"]) != 2 || len(blocks["yaml"]) != 1 || len(blocks["json"]) != 1 || len(blocks["text"]) != 1 {
		t.Fatalf("the document has other blocks than this test runs: %v", blocks)
	}
	dir := t.TempDir()
	run := func(script string) string {
		command := exec.CommandContext(t.Context(), "sh", "-e", "-c", script)
		command.Dir = dir
		var stderr strings.Builder
		command.Stderr = &stderr
		out, err := command.Output()
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, script, stderr.String())
		}
		return string(out)
	}
	run(blocks["sh"][0])

	var fields map[string]any
	if err := json.Unmarshal([]byte(blocks["json"][0]), &fields); err != nil {
		t.Fatal(err)
	}
	for name, value := range fields {
		if file, ok := strings.CutPrefix(stringOf(value), "@"); ok {
			content, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			fields[name] = string(content)
		}
	}
	filled, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	var request v1.SignCertificateRequest
	if err := protojson.Unmarshal(filled, &request); err != nil {
		t.Fatal(err)
	}
	wire, err := proto.Marshal(&request)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := call(t, connect(t, start(t, blocks["yaml"][0]).socket("")), methodSignCertificateV1, wire)
	if err != nil {
		t.Fatal(err)
	}
	var reply v1.SignCertificateResponse
	if err := proto.Unmarshal(answer, &reply); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "app.crt"), []byte(reply.GetPem()), 0o600); err != nil {
		t.Fatal(err)
	}
	// Versions of OpenSSL differ in empty lines and in spaces at the ends of lines.
	got, want := filledLines(run(blocks["sh"][1])), filledLines(blocks["text"][0])
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the commands print (-document +printed):\n%s", diff)
	}
}

func filledLines(text string) []string {
	var filled []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \n"); line != "" {
			filled = append(filled, line)
		}
	}
	return filled
}

func stringOf(value any) string {
	text, _ := value.(string)
	return text
}
