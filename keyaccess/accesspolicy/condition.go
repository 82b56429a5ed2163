// SPDX-License-Identifier: Apache-2.0

package accesspolicy

// Condition is a compiled condition: an expression in CEL, or a rule of a module in Rego.
type Condition interface {
	// Reads returns the names of the inputs that it may read.
	Reads() []string
	// Evaluate reports whether it holds.
	Evaluate(v *Values) (bool, error)
}

// Module has the rules of a module in Rego.
type Module struct {
	// Deny is nil if there is no such rule.
	Deny, Allow Condition
}

// CompileModule compiles a module in Rego. The error has a sentence for each problem, with line and column in the text. It is nil
// if modules are not allowed.
type CompileModule func(text string) (Module, error)

// Values are the inputs for the conditions of one decision.
type Values struct {
	// Variables has the value of each variable, such as object.keyId.
	Variables map[string]any
	// Modules has the state that all modules of the decision share. It is nil until one of them
	// needs it.
	Modules interface{ End() }

	// budget is the cost that is left for expressions.
	budget uint64
}

func (v *Values) end() {
	if v.Modules != nil {
		v.Modules.End()
	}
}
