// SPDX-License-Identifier: Apache-2.0

//go:build process

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func TestEveryLoadIsServedInEveryWayWithoutAnError(t *testing.T) {
	document := filepath.Join(t.TempDir(), "benchmarks.md")
	figures := filepath.Join(t.TempDir(), "figures.json")
	if err := os.WriteFile(document, []byte("before\n"+reportBegin+"\nold\n"+reportEnd+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := readOptions([]string{"--quick", "--rounds", "1", "--time", "10ms", "--report", document, "--json", figures})
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"before\n", "\nafter\n", "### SHA3-512 of 32 bytes", "### Certificate for P-256 under P-384", "none failed", "resident when idle"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the document has no %q:\n%s", want, text)
		}
	}
	if bytes.Contains(text, []byte("\nold\n")) {
		t.Error("the document still has the results of another run")
	}
	var written struct {
		Cells []struct {
			Load, Way string
			Rounds    []sample
		}
	}
	text, err = os.ReadFile(figures)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &written); err != nil {
		t.Fatal(err)
	}
	for _, c := range written.Cells {
		if len(c.Rounds) != 1 || c.Rounds[0].Calls == 0 || c.Rounds[0].Errors > 0 {
			t.Errorf("%s, %s: found %+v, want a round with calls and without errors", c.Load, c.Way, c.Rounds)
		}
	}
}

func TestASoakFindsThatTheBrokerEndsWhereItBegan(t *testing.T) {
	o, err := readOptions([]string{"--soak", "1ms", "--quick"})
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}
