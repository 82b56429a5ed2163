// SPDX-License-Identifier: Apache-2.0

// Program reference writes the pages of docs/reference from the sources: conditions,
// events, the codes of errors, the methods of gRPC, and the flags of all programs. It runs in the root of the repository.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const folder = "docs/reference"

func main() {
	if err := generate(); err != nil {
		fmt.Fprintln(os.Stderr, "hack/generate/reference:", err)
		os.Exit(1)
	}
}

func generate() error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, page := range map[string]func() (string, error){
		"conditions.md": conditions, "events.md": events, "errors.md": codes, "methods.md": methods,
		"flags.md": flags,
	} {
		text, err := page()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// begin returns the beginning of a page.
func begin(title, introduction string) *strings.Builder {
	b := &strings.Builder{}
	fmt.Fprintf(b, "# %s\n\nMade by `make generate` from the sources.\n%s\n", title, introduction)
	return b
}

// row writes a row of a table. A text of several lines becomes one line.
func row(b *strings.Builder, cells ...string) {
	for _, cell := range cells {
		fmt.Fprintf(b, "| %s ", strings.ReplaceAll(strings.Join(strings.Fields(cell), " "), "|", `\|`))
	}
	b.WriteString("|\n")
}
