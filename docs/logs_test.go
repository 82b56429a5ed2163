// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// logging are the folders with the code of the programs that write logs. The command lines do not write logs, because their output
// is the result of a command.
var logging = []string{"../api", "../broker", "../cmd", "../controllers", "../keyaccess", "../webhook"}

var notLogging = []string{"../cmd/crypto-broker", "../cmd/kubectl-crypto_broker"}

// ofLines are the parts of every line. No attribute may have one of these names.
var ofLines = []string{"time", "level", "msg", "component", "version"}

// ofLibraries are attributes that the code of this repository does not write.
var ofLibraries = []string{
	"logger", "controller", "controllerGroup", "controllerKind", "reconcileID", "object", "webhook", "operation", "user", "requestID", "resource",
}

// A logCall is a call that writes a line, or that adds attributes to a logger.
type logCall struct {
	where   string
	message string // empty if it is no literal
	keys    []string
}

var (
	logger      = regexp.MustCompile(`(?i)(log|logger)$`)
	lineMethods = map[string]int{ // how many arguments are before the attributes
		"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "With": 0, "WithValues": 0, "Log": 3, "LogAttrs": 3,
		"DebugContext": 2, "InfoContext": 2, "WarnContext": 2, "ErrorContext": 2,
	}
	attributeFunctions = []string{"String", "Int", "Int64", "Uint64", "Float64", "Bool", "Time", "Duration", "Any", "Group", "Attr"}
)

// isLogger reports whether an expression is a logger, by its name: log.Log, s.logger,
// log.FromContext(ctx), logger.V(1).
func isLogger(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return logger.MatchString(e.Name)
	case *ast.SelectorExpr:
		return logger.MatchString(e.Sel.Name)
	case *ast.CallExpr:
		if s, ok := e.Fun.(*ast.SelectorExpr); ok {
			return s.Sel.Name == "FromContext" || isLogger(s.X)
		}
	}
	return false
}

func literal(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		text, _ := strconv.Unquote(l.Value) // cannot fail: the parser has accepted it
		return text
	}
	if b, ok := e.(*ast.BinaryExpr); ok { // texts that are joined by +: use the first one
		return literal(b.X)
	}
	return ""
}

// logCalls returns all calls of a file that write attributes of lines.
func logCalls(t *testing.T, path string) []logCall {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var calls []logCall
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		found := logCall{where: files.Position(call.Pos()).String()}
		if of, ok := method.X.(*ast.Ident); ok && of.Name == "slog" && slices.Contains(attributeFunctions, method.Sel.Name) && len(call.Args) > 0 {
			found.keys = []string{literal(call.Args[0])}
			calls = append(calls, found)
			return true
		}
		before, ok := lineMethods[method.Sel.Name]
		if !ok || !isLogger(method.X) {
			return true
		}
		if method.Sel.Name == "Error" && len(call.Args) > 1 && literal(call.Args[0]) == "" {
			before = 2 // the error of logr is before the message
		}
		if before > 0 && len(call.Args) >= before {
			found.message = literal(call.Args[before-1])
		}
		if method.Sel.Name != "LogAttrs" && call.Ellipsis == token.NoPos {
			for i := before; i < len(call.Args); i++ {
				if attribute, ok := call.Args[i].(*ast.CallExpr); ok && strings.HasPrefix(text(attribute.Fun), "slog.") {
					continue // found as a call of its own
				}
				found.keys = append(found.keys, literal(call.Args[i]))
				i++
			}
		}
		calls = append(calls, found)
		return true
	})
	return calls
}

// text returns a selector as it is written, empty for other expressions.
func text(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			return x.Name + "." + s.Sel.Name
		}
	}
	return ""
}

func allLogCalls(t *testing.T) []logCall {
	t.Helper()
	var calls []logCall
	for _, folder := range logging {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && slices.Contains(notLogging, path):
				return filepath.SkipDir
			case !entry.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
				calls = append(calls, logCalls(t, path)...)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(calls) < 100 {
		t.Fatalf("found %d calls that write lines, expected 100 or more: the test does not see them", len(calls))
	}
	return calls
}

// tableOfAttributes returns the names in the tables of docs/logs.md.
func tableOfAttributes(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("logs.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	row := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cell, _, _ := strings.Cut(line[1:], "|")
		for _, name := range row.FindAllStringSubmatch(cell, -1) {
			names = append(names, name[1])
		}
	}
	return names
}

func TestEachAttributeOfALogLineIsInTheTable(t *testing.T) {
	attributeName := regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)
	table := tableOfAttributes(t)
	written := map[string]bool{}
	for _, call := range allLogCalls(t) {
		for _, key := range call.keys {
			written[key] = true
			switch {
			case key == "":
				t.Errorf("%s: an attribute's name is not a literal, expected one so that this test can read it", call.where)
			case !attributeName.MatchString(key):
				t.Errorf("%s: found the attribute %q, expected a name like configMap", call.where, key)
			case slices.Contains(ofLines, key) && !strings.Contains(call.where, "cmd/internal/logs"):
				t.Errorf("%s: found the attribute %q, which each line has already", call.where, key)
			case !slices.Contains(table, key):
				t.Errorf("%s: found the attribute %q, expected a row for it in docs/logs.md", call.where, key)
			}
		}
	}
	for _, name := range slices.Concat(ofLines, ofLibraries) {
		written[name] = true
		if !slices.Contains(table, name) {
			t.Errorf("docs/logs.md has no row for %q", name)
		}
	}
	for _, name := range table {
		if !written[name] {
			t.Errorf("docs/logs.md has a row for %q, which no line has; lines have %q", name, slices.Sorted(maps.Keys(written)))
		}
	}
}

func TestMessagesOfLogLinesBeginInLowerCase(t *testing.T) {
	for _, call := range allLogCalls(t) {
		if call.message == "" {
			continue
		}
		word, _, _ := strings.Cut(call.message, " ")
		capital := unicode.IsUpper([]rune(word)[0])
		name := strings.ContainsFunc(word[1:], unicode.IsUpper) // TLS, ConfigMap
		if capital && !name || strings.HasSuffix(call.message, ".") {
			t.Errorf("%s: found the message %q, expected a beginning in lower case and no full stop", call.where, call.message)
		}
	}
}
