// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// constant is a constant of a Go file that has a text as its value, or a number.
type constant struct{ name, value, comment, group string }

// constants returns the constants of a kind below a directory whose names a pattern matches, in the
// order of the files. A constant needs a comment, because the pages have no other text for it.
func constants(directory string, kind token.Token, names *regexp.Regexp) ([]constant, error) {
	var found []constant
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, declaration := range file.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok || general.Tok != token.CONST {
				continue
			}
			for _, spec := range general.Specs {
				value := spec.(*ast.ValueSpec)
				if !names.MatchString(value.Names[0].Name) || len(value.Values) != 1 {
					continue
				}
				literal, ok := value.Values[0].(*ast.BasicLit)
				if !ok || literal.Kind != kind {
					continue
				}
				c := constant{name: value.Names[0].Name, value: literal.Value, comment: value.Doc.Text(), group: general.Doc.Text()}
				if !general.Lparen.IsValid() {
					c.comment, c.group = general.Doc.Text(), ""
				}
				if c.comment == "" {
					return fmt.Errorf("%s: the constant %s has no comment, expected one for the reference", path, c.name)
				}
				if kind == token.STRING {
					if c.value, err = strconv.Unquote(literal.Value); err != nil {
						return err
					}
				}
				found = append(found, c)
			}
		}
		return nil
	})
	return found, err
}

// says returns the comment of a constant as a sentence without the name of the constant.
func says(c constant) string {
	text := strings.TrimPrefix(strings.Join(strings.Fields(c.comment), " "), c.name+" ")
	for _, words := range []string{"means that ", "says that ", "means "} {
		text = strings.TrimPrefix(text, words)
	}
	text = strings.ReplaceAll(text, ", or that ", ", or ")
	return strings.ToUpper(text[:1]) + text[1:]
}

func conditions() (string, error) {
	types, err := constants("api/v1alpha1", token.STRING, regexp.MustCompile(`^Condition[A-Z]`))
	if err != nil {
		return "", err
	}
	reasons, err := constants("api/v1alpha1", token.STRING, regexp.MustCompile(`^Reason[A-Z]`))
	if err != nil {
		return "", err
	}
	b := begin("Conditions", "`kubectl describe` shows the conditions of profiles and key providers, each with a reason and a message that says what to do.\n"+
		"[Running the operator](../running.md#look-at-it) says how to begin.\n\n## Types")
	b.WriteString("\n| condition | meaning |\n|---|---|\n")
	for _, c := range types {
		row(b, "`"+c.value+"`", says(c))
	}
	group := ""
	for _, c := range reasons {
		if c.group != group {
			group = c.group
			title, more, _ := strings.Cut(strings.Join(strings.Fields(group), " "), ", ")
			fmt.Fprintf(b, "\n## %s\n", strings.TrimSuffix(title, "."))
			if more != "" {
				fmt.Fprintf(b, "\n%s%s\n", strings.ToUpper(more[:1]), constantName.ReplaceAllString(more[1:], "`$1`"))
			}
			b.WriteString("\n| reason | meaning |\n|---|---|\n")
		}
		row(b, "`"+c.value+"`", says(c))
	}
	return b.String(), nil
}

// constantName matches the name of the constant of a reason.
var constantName = regexp.MustCompile(`\bReason([A-Z]\w+)`)

func events() (string, error) {
	found, err := constants("controllers", token.STRING, regexp.MustCompile(`^event[A-Z]`))
	if err != nil {
		return "", err
	}
	slices.SortFunc(found, func(a, b constant) int { return cmp.Compare(a.value, b.value) })
	b := begin("Events", "The operator writes events on the objects that they are about. A change of a [condition](conditions.md) to the worse makes an event with the\n"+
		"reason of the condition. A step of a [rollout](../rollouts.md) makes an event with its phase. These are the others.")
	b.WriteString("\n| reason | meaning |\n|---|---|\n")
	for _, c := range found {
		row(b, "`"+c.value+"`", says(c))
	}
	return b.String(), nil
}

// camel matches the beginnings of the words of a name.
var camel = regexp.MustCompile(`([a-z])([A-Z])`)

func codes() (string, error) {
	found, err := constants("clients/go", token.INT, regexp.MustCompile(`^Code[A-Z]`))
	if err != nil {
		return "", err
	}
	b := begin("Codes of errors", "A call that fails has one of these codes of gRPC. The clients of all languages have them, with a sentence that says what was found and what was\n"+
		"expected. [Operations](../operations/README.md) says which calls to repeat.")
	b.WriteString("\n| code | number | meaning |\n|---|---|---|\n")
	for _, c := range found {
		name := strings.ToUpper(camel.ReplaceAllString(strings.TrimPrefix(c.name, "Code"), "${1}_$2"))
		row(b, "`"+name+"`", c.value, says(c))
	}
	return b.String(), nil
}
