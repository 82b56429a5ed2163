// SPDX-License-Identifier: Apache-2.0

package accesspolicy

import (
	"context"

	"github.com/open-policy-agent/opa/v1/ast"
)

// condition is what was compiled: an expression in CEL, or a rule of a module in Rego.
type condition interface {
	// reads returns the names of what it may read.
	reads() []string
	// evaluate reports whether it holds.
	evaluate(v *values) (bool, error)
}

// values are what the conditions of one decision are evaluated with.
type values struct {
	variables map[string]any
	// budget is the cost that is left for expressions.
	budget uint64
	// input are the variables for Rego, and context ends its time. Both are nil until they are needed.
	input   ast.Value
	context context.Context
	end     context.CancelFunc
}

func (v *values) close() {
	if v.end != nil {
		v.end()
	}
}
