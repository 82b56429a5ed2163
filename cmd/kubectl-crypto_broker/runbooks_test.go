// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestTheCommandsOfRunbooksAreOnesThatThePluginHas(t *testing.T) {
	pages, err := filepath.Glob("../../docs/runbooks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile("(?m)(?:`|^)kubectl crypto-broker ([^`\n]+)")
	tried := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range commands.FindAllStringSubmatch(string(text), -1) {
			tried++
			command, rest, err := newRoot().Find(strings.Fields(found[1]))
			if err == nil {
				err = command.ParseFlags(rest)
			}
			if err == nil {
				err = command.ValidateArgs(command.Flags().Args())
			}
			if err != nil || !command.HasParent() {
				t.Errorf("%s: kubectl crypto-broker %s: %v, expected a command of the plugin with its flags and arguments", page, found[1], err)
			}
		}
	}
	if tried < 15 {
		t.Errorf("found %d commands in %d pages, expected at least 15", tried, len(pages))
	}
}
