// SPDX-License-Identifier: Apache-2.0

package regopolicy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/accesspolicy"
)

const (
	// modulePackage is the package of each module.
	modulePackage = "keyaccess"
	// maxTime is how long all rules in Rego of a decision may take. It is thousands of times what rules need, because it goes on
	// while the processors are busy with other requests.
	maxTime = time.Second
	// maxCompile is how long a module may take to compile. The time of OPA's parser and compiler doubles with each level of
	// some nested terms, and neither can be stopped.
	maxCompile = 3 * time.Second
)

// builtins are the built-in functions of modules. None of them makes a connection. The result of each is at most as large as
// its arguments, so that repeated calls cannot fill the memory. Regular expressions are missing as in CEL.
var builtins = []string{
	"eq", "assign", "equal", "neq", "lt", "lte", "gt", "gte", "internal.member_2", "internal.member_3",
	"plus", "minus", "rem", "abs", "ceil", "floor", "round", "to_number",
	"count", "sum", "min", "max", "sort", "and", "or", "intersection", "union", "array.slice", "array.reverse",
	"object.get", "object.keys", "object.subset", "is_array", "is_boolean", "is_null", "is_number", "is_object", "is_set", "is_string", "type_name",
	"contains", "startswith", "endswith", "indexof", "lower", "upper", "split", "substring", "trim", "trim_left", "trim_prefix", "trim_right", "trim_space", "trim_suffix",
	"strings.any_prefix_match", "strings.any_suffix_match", "strings.count",
	"time.parse_rfc3339_ns", "time.parse_duration_ns", "time.clock", "time.date", "time.weekday", "time.add_date", "time.diff",
	"net.cidr_contains", "net.cidr_is_valid", "semver.compare", "semver.is_valid",
}

// capabilities returns the language without the other built-in functions.
var capabilities = sync.OnceValue(func() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	c.Builtins = slices.DeleteFunc(slices.Clone(c.Builtins), func(b *ast.Builtin) bool { return !slices.Contains(builtins, b.Name) })
	c.AllowNet = []string{}
	return c
})

// schema is the type of input, which has the variables of expressions.
var schema = sync.OnceValue(func() *ast.SchemaSet {
	text, many := map[string]any{"type": "string"}, map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
	object := func(properties map[string]any) map[string]any {
		return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	}
	schemas := ast.NewSchemaSet()
	schemas.Put(ast.SchemaRootRef, object(map[string]any{
		"object": object(map[string]any{"attributes": many, "recipients": many, "keyId": text, "keyType": text}),
		"caller": object(map[string]any{"issuer": text, "subject": text, "clientId": text, "bound": map[string]any{"type": "boolean"}, "claims": map[string]any{"type": "object"}}),
		"origin": object(map[string]any{"address": text, "peer": text}),
		"now":    text,
	}))
	return schemas
})

// rule is a rule of a module.
type rule struct {
	query rego.PreparedEvalQuery
	names []string
}

// compiling is held while a module is compiled, so that modules which take forever have one processor at most.
var compiling = make(chan struct{}, 1)

// compiled is a compiled module, or its problem.
type compiled struct {
	accesspolicy.Module
	err error
}

// Compile implements [accesspolicy.CompileModule].
func Compile(text string) (accesspolicy.Module, error) {
	c := compile(text)
	return c.Module, c.err
}

func compile(text string) compiled {
	if length := utf8.RuneCountInString(text); length > accesspolicy.MaxSource {
		return compiled{err: fmt.Errorf("found a module of %d characters, expected at most %d", length, accesspolicy.MaxSource)}
	}
	limit := time.NewTimer(maxCompile)
	defer limit.Stop()
	place := compiling
	select {
	case place <- struct{}{}:
	case <-limit.C:
		return compiled{err: fmt.Errorf("another module is compiled, and has taken longer than %s", maxCompile)}
	}
	done := make(chan compiled, 1)
	go func() {
		defer func() {
			if recovered := recover(); recovered != nil {
				done <- compiled{err: errors.New("line 1, column 1 of the module: OPA cannot compile it, because of a defect")}
			}
			<-place
		}()
		var c compiled
		c.Module, c.err = compileUnlimited(text)
		done <- c
	}()
	select {
	case c := <-done:
		return c
	case <-limit.C:
		return compiled{err: fmt.Errorf("line 1, column 1 of the module: it takes longer than %s to compile; nest terms less deeply", maxCompile)}
	}
}

// compileUnlimited is compile without limits.
func compileUnlimited(text string) (m accesspolicy.Module, err error) {
	read, err := ast.ParseModuleWithOpts("", text, ast.ParserOptions{Capabilities: capabilities()})
	if err != nil {
		return m, problemsOf(err)
	}
	if read == nil || read.Package.Path.String() != "data."+modulePackage {
		return m, fmt.Errorf("line 1, column 1 of the module: expected it to begin with: package %s", modulePackage)
	}
	compiler := ast.NewCompiler().WithCapabilities(capabilities()).WithSchemas(schema()).WithStrict(true)
	if compiler.Compile(map[string]*ast.Module{"": read}); compiler.Failed() {
		return m, problemsOf(compiler.Errors)
	}
	names := inputs(read)
	for name, into := range map[string]*accesspolicy.Condition{"deny": &m.Deny, "allow": &m.Allow} {
		rules := compiler.GetRulesExact(ast.MustParseRef("data." + modulePackage + "." + name))
		if len(rules) == 0 {
			continue
		}
		if head := rules[0].Head; head.RuleKind() != ast.SingleValue || len(head.Args) > 0 {
			return m, fmt.Errorf("line %d, column %d of the module: found a set, an object or a function with the name %s, expected a rule that is true or false", head.Location.Row, head.Location.Col, name)
		}
		query, err := rego.New(rego.Query("data."+modulePackage+"."+name), rego.Compiler(compiler), rego.Capabilities(capabilities()), rego.StrictBuiltinErrors(true)).PrepareForEval(context.Background())
		if err != nil {
			return m, problemsOf(err)
		}
		*into = &rule{query, names}
	}
	if m.Allow == nil {
		return m, errors.New("line 1, column 1 of the module: found no rule allow, without which nothing is permitted")
	}
	return m, nil
}

// problemsOf returns a sentence for each problem of a module.
func problemsOf(err error) error {
	var found ast.Errors
	if !errors.As(err, &found) {
		return fmt.Errorf("line 1, column 1 of the module: %w", err)
	}
	var problems []error
	for _, problem := range found {
		row, column := 1, 1
		if problem.Location != nil {
			row, column = max(problem.Location.Row, 1), max(problem.Location.Col, 1)
		}
		problems = append(problems, fmt.Errorf("line %d, column %d of the module: %s", row, column, problem.Message))
	}
	return errors.Join(problems...)
}

// inputs returns the names of what the rules of a module may read.
func inputs(m *ast.Module) []string {
	names := map[string]bool{}
	ast.WalkRefs(m, func(ref ast.Ref) bool {
		if !ref.HasPrefix(ast.InputRootRef) {
			return false
		}
		name := ""
		for _, part := range ref[1:] {
			key, ok := part.Value.(ast.String)
			if !ok {
				break
			}
			if name == "" {
				name = string(key)
			} else {
				name = accesspolicy.Member(name, string(key))
			}
		}
		if name == "" {
			name = "input" // the rule reads the complete input
		}
		names[name] = true
		return false
	})
	return slices.Sorted(maps.Keys(names))
}

// Reads implements [accesspolicy.Condition].
func (r *rule) Reads() []string { return r.names }

// Evaluate implements [accesspolicy.Condition]. A rule that is not defined for the input is not true.
func (r *rule) Evaluate(v *accesspolicy.Values) (bool, error) {
	in, ok := v.Modules.(*decision)
	if !ok {
		var err error
		if in, err = newDecision(v.Variables); err != nil {
			return false, err
		}
		v.Modules = in
	}
	results, err := r.query.Eval(in.context, rego.EvalParsedInput(in.input))
	if err != nil {
		return false, err
	}
	if len(results) == 0 {
		return false, nil
	}
	found, ok := results[0].Expressions[0].Value.(bool)
	if !ok {
		return false, errors.New("the value is not a bool")
	}
	return found, nil
}

// decision has the state that all rules in Rego of one decision share.
type decision struct {
	input ast.Value
	// context ends when the rules have used the time that they have together.
	context context.Context
	end     context.CancelFunc
}

// End ends the time of the decision.
func (d *decision) End() { d.end() }

// newDecision returns a decision whose input has the variables as one object. The variable object.keyId of an expression is
// input.object.keyId in a module. The variable now becomes a text in the form of RFC 3339.
func newDecision(variables map[string]any) (*decision, error) {
	all := map[string]any{}
	for name, value := range variables {
		if now, ok := value.(time.Time); ok {
			value = now.UTC().Format(time.RFC3339Nano)
		}
		outer, inner, nested := strings.Cut(name, ".")
		if !nested {
			all[outer] = value
			continue
		}
		group, _ := all[outer].(map[string]any)
		if group == nil {
			group = map[string]any{}
			all[outer] = group
		}
		group[inner] = value
	}
	input, err := ast.InterfaceToValue(all)
	if err != nil {
		return nil, err
	}
	d := &decision{input: input}
	d.context, d.end = context.WithTimeout(context.Background(), maxTime)
	return d, nil
}
