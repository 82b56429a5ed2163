// SPDX-License-Identifier: Apache-2.0

//go:build clients

package session

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestAnotherImplementationOfHPKEHasTheSameSecret begins sessions with key pairs of the npm packages
// @hpke/core and @hpke/hybridkem-x-wing.
func TestAnotherImplementationOfHPKEHasTheSameSecret(t *testing.T) {
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("testdata/hpke")); err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = folder
	if output, err := install.CombinedOutput(); err != nil {
		t.Fatalf("install the packages: %v\n%s", err, output)
	}
	for agreement, of := range agreements {
		t.Run(agreement, func(t *testing.T) {
			client := exec.CommandContext(t.Context(), "node", "client.mjs", agreement)
			var stderr bytes.Buffer
			client.Dir, client.Stderr = folder, &stderr
			input, err := client.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			output, err := client.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := client.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(output)
			read := func() string {
				if !lines.Scan() {
					t.Fatalf("no line: %v\n%s", lines.Err(), &stderr)
				}
				return lines.Text()
			}
			s, _ := newStore(t)
			p := nativePolicy(t, "")
			public := read()
			begun, err := s.BeginNative(theOwner, p, Init{KeyAgreement: agreement, ClientPublicKey: public, TTL: 1800 * time.Second}, signTranscript)
			if err != nil {
				t.Fatal(err)
			}
			context := strings.Join([]string{of.protocol, "P", "A256GCM", begun.ID, "1800", public}, "\n")
			if _, err := fmt.Fprintf(input, "%s\n%s\n", begun.ServerPublicKey, base64.StdEncoding.EncodeToString([]byte(context))); err != nil {
				t.Fatal(err)
			}
			got := read()
			if err := input.Close(); err != nil {
				t.Fatal(err)
			}
			if err := client.Wait(); err != nil {
				t.Fatalf("%v\n%s", err, &stderr)
			}
			var secret [keySize]byte
			if s.find(theOwner, p, begun.ID, &secret) == nil {
				t.Fatal("there is no session")
			}
			if got != base64.StdEncoding.EncodeToString(secret[:]) {
				t.Error("the other implementation has another secret")
			}
		})
	}
}
