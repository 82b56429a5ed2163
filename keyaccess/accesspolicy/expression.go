// SPDX-License-Identifier: Apache-2.0

package accesspolicy

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // expressions name time zones, and the image of the gateway has none

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/tdfpolicy"
)

const (
	// maxExpression is the size of the longest expression in code points, and maxDepth how deep one is nested.
	maxExpression, maxDepth = 4096, 32
	// maxRuleCost is the largest cost of one evaluation, and maxCost of all that a decision needs, in the units of
	// cel-go: about one for each step, and more for long texts.
	maxRuleCost, maxCost = 20_000, 200_000
)

// variables are the variables that expressions may read.
var variables = map[string]*cel.Type{
	"object.attributes": cel.ListType(cel.StringType),
	"object.recipients": cel.ListType(cel.StringType),
	"object.keyId":      cel.StringType,
	"object.keyType":    cel.StringType,
	"caller.issuer":     cel.StringType,
	"caller.subject":    cel.StringType,
	"caller.clientId":   cel.StringType,
	"caller.bound":      cel.BoolType,
	"caller.claims":     cel.MapType(cel.StringType, cel.DynType),
	"origin.address":    cel.StringType,
	"origin.peer":       cel.StringType,
	"now":               cel.TimestampType,
}

// environment returns the environment of CEL in which expressions are compiled.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	options := []cel.EnvOption{
		// The cost of a regular expression depends on texts that callers choose.
		cel.StdLib(cel.StdLibSubset(env.NewLibrarySubset().AddExcludedFunctions(env.NewFunction("matches")))),
		cel.Function("inNetwork", cel.Overload("in_network", []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType, cel.BinaryBinding(inNetwork))),
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), // numbers of claims are double, and people write 3
		cel.ParserExpressionSizeLimit(maxExpression), cel.ParserRecursionLimit(maxDepth), cel.ParserErrorRecoveryLimit(4),
	}
	for name, kind := range variables {
		options = append(options, cel.Variable(name, kind))
	}
	return cel.NewCustomEnv(options...)
})

// inNetwork reports whether an address is in a network such as 10.0.0.0/8.
func inNetwork(address, network ref.Val) ref.Val {
	a, err := netip.ParseAddr(fmt.Sprint(address.Value()))
	if err != nil {
		return types.NewErr("inNetwork: the first argument is no IP address")
	}
	n, err := netip.ParsePrefix(fmt.Sprint(network.Value()))
	if err != nil {
		return types.NewErr("inNetwork: the second argument is not a network such as 10.0.0.0/8")
	}
	return types.Bool(n.Contains(a.Unmap().WithZone("")))
}

// activation returns the values of the variables.
func activation(who caller.Caller, object tdfpolicy.Object, now time.Time) map[string]any {
	claims := who.Claims
	if claims == nil {
		claims = map[string]any{}
	}
	return map[string]any{
		"object.attributes": object.Policy.Attributes, "object.recipients": object.Policy.Recipients, "object.keyId": object.KeyID, "object.keyType": object.KeyType,
		"caller.issuer": who.Issuer, "caller.subject": who.Subject, "caller.clientId": who.ClientID, "caller.bound": who.ProofKey != nil, "caller.claims": claims,
		"origin.address": object.Origin.Address, "origin.peer": object.Origin.Peer, "now": now,
	}
}

// expression is a compiled expression.
type expression struct {
	program cel.Program
	// inputs are the names of the inputs that it may read.
	inputs []string
}

// compile returns an expression. The error has a sentence for each problem, with line and column in the text.
func compile(text string) (*expression, error) {
	in, err := environment()
	if err != nil {
		return nil, err
	}
	checked, issues := in.Compile(text)
	if issues.Err() != nil {
		var problems []error
		for _, issue := range issues.Errors() {
			problems = append(problems, fmt.Errorf("line %d, column %d of the expression: %s", max(issue.Location.Line(), 1), max(issue.Location.Column(), 0)+1,
				strings.ReplaceAll(issue.Message, " (in container '')", "")))
		}
		return nil, errors.Join(problems...)
	}
	if kind := checked.OutputType(); !kind.IsExactType(cel.BoolType) {
		return nil, fmt.Errorf("line 1, column 1 of the expression: found the type %s, expected bool; compare a claim with a value, such as caller.claims.admin == true", kind)
	}
	program, err := in.Program(checked, cel.CostLimit(maxRuleCost))
	if err != nil {
		return nil, fmt.Errorf("line 1, column 1 of the expression: %w", err)
	}
	names := map[string]bool{}
	inputs(ast.NavigateAST(checked.NativeRep()), names)
	e := &expression{program: program}
	for name := range names {
		e.inputs = append(e.inputs, name)
	}
	slices.Sort(e.inputs)
	return e, nil
}

// inputs adds the names of the inputs that an expression may read.
func inputs(e ast.NavigableExpr, names map[string]bool) {
	if name, ok := input(e); ok {
		names[name] = true
		return
	}
	for _, child := range e.Children() {
		inputs(child, names)
	}
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// input returns the name of a variable, or of a part of it whose name is known before the evaluation.
func input(e ast.Expr) (string, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		_, known := variables[e.AsIdent()]
		return e.AsIdent(), known
	case ast.SelectKind:
		outer, ok := input(e.AsSelect().Operand())
		return Member(outer, e.AsSelect().FieldName()), ok
	case ast.CallKind:
		if call := e.AsCall(); call.FunctionName() == "_[_]" && call.Args()[1].Kind() == ast.LiteralKind {
			if key, isText := call.Args()[1].AsLiteral().Value().(string); isText {
				outer, ok := input(call.Args()[0])
				return Member(outer, key), ok
			}
		}
	}
	return "", false
}

// Member returns the name of a member of an input, as decisions and audit records have it.
func Member(outer, name string) string {
	if plainName.MatchString(name) {
		return outer + "." + name
	}
	return fmt.Sprintf("%s[%q]", outer, name)
}

// Reads implements [Condition].
func (e *expression) Reads() []string { return e.inputs }

// Evaluate implements [Condition]. It takes the cost of the expression from the budget.
func (e *expression) Evaluate(v *Values) (bool, error) {
	value, details, err := e.program.Eval(v.Variables)
	cost := uint64(maxRuleCost)
	if details != nil && details.ActualCost() != nil {
		cost = min(*details.ActualCost(), maxRuleCost)
	}
	if cost > v.budget {
		v.budget = 0
		return false, errors.New("the rules of all policies together cost too much")
	}
	v.budget -= cost
	if err != nil {
		return false, err
	}
	found, ok := value.Value().(bool)
	if !ok {
		return false, errors.New("the value is not a bool")
	}
	return found, nil
}
