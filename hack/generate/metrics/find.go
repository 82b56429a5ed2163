// SPDX-License-Identifier: Apache-2.0

package main

import (
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

// metric is the definition of a metric in a Go file.
type metric struct {
	name, kind, help string
	labels           []string
}

// metricName matches names of metrics. A string that matches and is in no definition is an error, so that no metric is left out.
var metricName = regexp.MustCompile(`^crypto_broker_[a-z0-9_]+$`)

// constructor is a function of client_golang that makes a metric from its options.
var constructor = regexp.MustCompile(`^New(Counter|Gauge|Histogram)(Vec|Func)?$`)

// finder collects the metrics of Go files.
type finder struct {
	files   *token.FileSet
	metrics []metric
	// mentioned has the strings that look like names of metrics, and where one of them is.
	mentioned map[string]token.Pos
}

// find returns the metrics that the Go files below directories define, by name.
func find(directories ...string) ([]metric, error) {
	f := finder{files: token.NewFileSet(), mentioned: map[string]token.Pos{}}
	for _, directory := range directories {
		err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			return f.file(path)
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(f.metrics, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	for i, m := range f.metrics {
		if i > 0 && f.metrics[i-1].name == m.name {
			return nil, fmt.Errorf("the metric %s is defined twice", m.name)
		}
		delete(f.mentioned, m.name)
	}
	for name, at := range f.mentioned {
		return nil, fmt.Errorf("%s: %q looks like a metric, and is in no definition that can be read", f.files.Position(at), name)
	}
	return f.metrics, nil
}

func (f *finder) file(path string) error {
	parsed, err := parser.ParseFile(f.files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, ok := textOf(n); ok && metricName.MatchString(text) {
				f.mentioned[text] = n.Pos()
			}
		case *ast.CallExpr:
			if err == nil {
				err = f.call(n)
			}
		}
		return err == nil
	})
	return err
}

// call notes the metric that a call makes, if it makes one.
func (f *finder) call(call *ast.CallExpr) error {
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	var m metric
	var rest []ast.Expr
	switch name := function.Sel.Name; {
	case name == "NewDesc" && len(call.Args) > 2:
		m.name, _ = textOf(call.Args[0])
		m.help, _ = textOf(call.Args[1])
		rest = call.Args[2:3]
		switch { // by the conventions of Prometheus
		case strings.HasSuffix(m.name, "_total"):
			m.kind = "counter"
		case strings.HasSuffix(m.name, "_duration_seconds"):
			m.kind = "summary"
		default:
			m.kind = "gauge"
		}
	case constructor.MatchString(name) && len(call.Args) > 0:
		m.kind = strings.ToLower(constructor.FindStringSubmatch(name)[1])
		m.name, m.help = optionsOf(call.Args[0])
		if strings.HasSuffix(name, "Vec") {
			rest = call.Args[1:]
		}
	default:
		return nil
	}
	if !metricName.MatchString(m.name) {
		return nil // such as a registry's own
	}
	if m.help == "" {
		return fmt.Errorf("%s: the metric %s has no help that is a constant string", f.files.Position(call.Pos()), m.name)
	}
	for _, labels := range rest {
		if list, ok := labels.(*ast.CompositeLit); ok {
			for _, each := range list.Elts {
				label, _ := textOf(each)
				if label == "" {
					return fmt.Errorf("%s: a label of the metric %s is not a constant string", f.files.Position(each.Pos()), m.name)
				}
				m.labels = append(m.labels, label)
			}
		} else if none, ok := labels.(*ast.Ident); !ok || none.Name != "nil" {
			return fmt.Errorf("%s: the labels of the metric %s are neither a list of strings nor nil", f.files.Position(labels.Pos()), m.name)
		}
	}
	f.metrics = append(f.metrics, m)
	return nil
}

// optionsOf returns the name and the help in the options of a metric.
func optionsOf(options ast.Expr) (name, help string) {
	list, ok := options.(*ast.CompositeLit)
	if !ok {
		return "", ""
	}
	for _, each := range list.Elts {
		pair, ok := each.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		text, _ := textOf(pair.Value)
		switch key, _ := pair.Key.(*ast.Ident); {
		case key == nil:
		case key.Name == "Name":
			name = text
		case key.Name == "Help":
			help = text
		}
	}
	return name, help
}

// textOf returns the value of an expression that is a string, or several joined by +.
func textOf(expression ast.Expr) (string, bool) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, ok := textOf(e.X)
		right, too := textOf(e.Y)
		return left + right, ok && too && e.Op == token.ADD
	}
	return "", false
}
