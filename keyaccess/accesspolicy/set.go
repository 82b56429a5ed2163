// SPDX-License-Identifier: Apache-2.0

package accesspolicy

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/tdfpolicy"
)

// Set is a set of policies. It is safe for concurrent use.
type Set struct {
	policies []*Policy
	revision uint64
}

// revisions counts sets.
var revisions atomic.Uint64

// NewSet returns a set. Names of policies are unique.
func NewSet(policies []*Policy) (*Set, error) {
	if len(policies) > maxPolicies {
		return nil, fmt.Errorf("found %d policies, expected at most %d", len(policies), maxPolicies)
	}
	seen := map[string]bool{}
	for _, p := range policies {
		if seen[p.Name] {
			return nil, fmt.Errorf("found two policies with the name %q, expected one", p.Name)
		}
		seen[p.Name] = true
	}
	return &Set{policies: policies, revision: revisions.Add(1)}, nil
}

// Revision returns a number that no other set of this process has.
func (s *Set) Revision() uint64 { return s.revision }

// Len returns the number of policies.
func (s *Set) Len() int { return len(s.policies) }

// Step is a rule that had an effect on a decision.
type Step struct {
	Policy string `json:"policy"`
	// Rule is empty if no rule of the policy allows.
	Rule string `json:"rule,omitempty"`
	// At is the place of the rule's expression: file, line and column.
	At string `json:"at,omitempty"`
}

// Problem is a rule that could not be evaluated.
type Problem struct {
	Step
	// Err may have values of claims. It is for the author of the request, not for logs.
	Err error `json:"-"`
}

// Decision is the decision of policies about a data key.
type Decision struct {
	Permitted bool
	// Applied are the names of the policies that apply. Without any, nothing is permitted.
	Applied []string
	// By are the rules that decided: the rule that denies, or for each policy a rule that allows.
	By []Step
	// Reason is a sentence without values of claims.
	Reason string
	// Inputs are the names of the inputs that the evaluated rules may have read.
	Inputs   []string
	Problems []Problem
}

// Decide says whether a caller may have a data key.
func (s *Set) Decide(who caller.Caller, object tdfpolicy.Object, now time.Time) Decision {
	d := decider{values: Values{Variables: activation(who, object, now), budget: maxCost}, inputs: map[string]bool{}}
	defer d.values.end()
	d.decide(s.policies)
	for name := range d.inputs {
		d.Inputs = append(d.Inputs, name)
	}
	slices.Sort(d.Inputs)
	return d.Decision
}

type decider struct {
	Decision
	values Values
	inputs map[string]bool
}

func (d *decider) decide(policies []*Policy) {
	var applied []*Policy
	for _, p := range policies {
		applies := true
		if p.appliesTo != nil {
			var err error
			if applies, err = d.evaluate(p.appliesTo); err != nil {
				d.end(p.appliesTo, "could not be evaluated")
				return
			}
		}
		if applies {
			applied = append(applied, p)
			d.Applied = append(d.Applied, p.Name)
		}
	}
	if len(applied) == 0 {
		d.Reason = "no policy applies"
		return
	}
	for _, p := range applied {
		for i := range p.deny {
			denies, err := d.evaluate(&p.deny[i])
			if err != nil {
				d.end(&p.deny[i], "could not be evaluated")
				return
			}
			if denies {
				d.end(&p.deny[i], "denies")
				return
			}
		}
	}
	var allowed []Step
	for _, p := range applied {
		i := slices.IndexFunc(p.allow, func(r rule) bool {
			allows, err := d.evaluate(&r)
			return err == nil && allows
		})
		if i < 0 {
			d.By, d.Reason = []Step{{Policy: p.Name}}, fmt.Sprintf("no rule of the policy %s allows", p.Name)
			return
		}
		allowed = append(allowed, p.allow[i].step())
	}
	d.Permitted, d.By, d.Reason = true, allowed, "each policy that applies allows"
}

func (r *rule) step() Step { return Step{Policy: r.policy, Rule: r.name, At: r.at} }

func (d *decider) end(r *rule, what string) {
	d.By, d.Reason = []Step{r.step()}, fmt.Sprintf("the rule %s of the policy %s %s (%s)", r.name, r.policy, what, r.at)
}

func (d *decider) evaluate(r *rule) (bool, error) {
	for _, name := range r.Reads() {
		d.inputs[name] = true
	}
	found, err := r.Evaluate(&d.values)
	if err != nil {
		d.Problems = append(d.Problems, Problem{Step: r.step(), Err: err})
	}
	return found, err
}

// errDenied is the reason that callers of Authorize log where a decision has none.
var errDenied = errors.New("no policy applies, and there are no rules")
