// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// programs are the programs of the page, with those commands that have flags of their own and that the help does not
// list as cobra lists them.
var programs = []struct {
	name     string
	commands []string
}{
	{"broker", []string{"health"}},
	{"operator", nil},
	{"gateway", []string{"kms", "key-access", "rego-check", "access"}},
	{"crypto-broker", nil},
	{"kubectl-crypto_broker", nil},
}

// listed matches the part of a help that lists the commands below a command, as cobra writes it.
var listed = regexp.MustCompile(`(?m)^Available Commands:\n((?:  .*\n)+)`)

// flags builds the programs and returns the page of what they print with --help.
func flags() (string, error) {
	folder, err := os.MkdirTemp("", "reference")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	// "make build" compiles with the same settings, so the build cache has most of it. Without symbols, linking takes less.
	build := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", folder+string(filepath.Separator), "./cmd/...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFIPS140=v1.0.0")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the programs: %w\n%s", err, output)
	}
	b := begin("Flags of all programs", "This is what the programs print with `--help`.\n")
	for _, program := range programs {
		fmt.Fprintf(b, "* [%s](#%[1]s)\n", program.name)
	}
	for _, program := range programs {
		texts, err := helps(filepath.Join(folder, program.name), program.name, program.commands)
		if err != nil {
			return "", err
		}
		for _, each := range texts {
			fmt.Fprintf(b, "\n## %s\n\n```text\n%s\n```\n", each.name, strings.TrimSpace(each.text))
		}
	}
	return b.String(), nil
}

// help is the help of a command.
type help struct{ name, text string }

// helps returns the help of a program and of all commands below it.
func helps(path, name string, commands []string) ([]help, error) {
	text, err := ask(path, name)
	if err != nil {
		return nil, err
	}
	if list := listed.FindStringSubmatch(text); list != nil {
		for line := range strings.Lines(list[1]) {
			// Help and completion are cobra's own.
			if command := strings.Fields(line)[0]; command != "help" && command != "completion" {
				commands = append(commands, command)
			}
		}
	}
	found := []help{{name, text}}
	for _, command := range commands {
		below, err := helps(path, name+" "+command, nil)
		if err != nil {
			return nil, err
		}
		found = append(found, below...)
	}
	return found, nil
}

// ask returns what a command prints with --help. Its environment is empty, so that the page is the same everywhere.
func ask(path, command string) (string, error) {
	run := exec.Command(path, append(strings.Fields(command)[1:], "--help")...)
	run.Env = []string{"HOME=/root"}
	output, err := run.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s --help: %w\n%s", command, err, output)
	}
	return string(output), nil
}
