// SPDX-License-Identifier: Apache-2.0

package accesspolicy

import (
	"fmt"
	"unicode/utf8"
)

// MaxSource is the number of characters of all expressions of a [Source]. Admission waits for their compilation.
const MaxSource = 16 << 10

// Source is a policy in text, with the fields that a document has below spec.
type Source struct {
	// AppliesTo is empty if the policy applies to everything.
	AppliesTo   string
	Deny, Allow []SourceRule
	// Rego is a module that has the rules instead, or empty.
	Rego string
}

// SourceRule is a rule in text.
type SourceRule struct{ Name, When string }

// Mistake is something that is wrong with a [Source].
type Mistake struct {
	// List is appliesTo, deny, allow or rego, and Index the place of the rule in deny or allow. Without a list, the policy as a
	// whole is wrong.
	List  string
	Index int
	// Err says what is wrong, with line and column of the expression.
	Err error
}

// Compile compiles a policy. The names of its rules are taken as they are, and say in decisions and audit records which rule
// it was: the caller of Compile has checked them. modules compiles a module in Rego.
func Compile(name string, source Source, modules CompileModule) (*Policy, []Mistake) {
	if length := source.length(); length > MaxSource {
		return nil, []Mistake{{Err: fmt.Errorf("found expressions of %d characters together, expected at most %d", length, MaxSource)}}
	}
	p := &Policy{Name: name}
	var mistakes []Mistake
	one := func(list, ruleName string, index int, at, text string) rule {
		compiled, err := compile(text)
		for _, problem := range Problems(err) {
			mistakes = append(mistakes, Mistake{List: list, Index: index, Err: problem})
		}
		return rule{policy: name, name: ruleName, at: at, Condition: compiled}
	}
	if source.AppliesTo != "" {
		applies := one("appliesTo", "appliesTo", 0, "spec.appliesTo", source.AppliesTo)
		p.appliesTo = &applies
	}
	for _, rules := range []struct {
		list string
		from []SourceRule
		to   *[]rule
	}{{"deny", source.Deny, &p.deny}, {"allow", source.Allow, &p.allow}} {
		if len(rules.from) > maxRules {
			mistakes = append(mistakes, Mistake{Err: fmt.Errorf("found %d rules under %s, expected at most %d", len(rules.from), rules.list, maxRules)})
			continue
		}
		for i, found := range rules.from {
			*rules.to = append(*rules.to, one(rules.list, found.Name, i, fmt.Sprintf("spec.%s[%d].when", rules.list, i), found.When))
		}
	}
	if source.Rego != "" {
		for _, problem := range Problems(p.compileModule(source, modules)) {
			mistakes = append(mistakes, Mistake{List: "rego", Err: problem})
		}
	}
	if len(p.deny)+len(p.allow) == 0 && len(mistakes) == 0 {
		mistakes = append(mistakes, Mistake{Err: errNoRule})
	}
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	return p, nil
}

// compileModule compiles the module of a source.
func (p *Policy) compileModule(source Source, modules CompileModule) error {
	switch {
	case modules == nil:
		return errRegoIsOff
	case len(source.Deny)+len(source.Allow) > 0:
		return errBoth
	}
	return p.setModule(source.Rego, "spec.rego", modules)
}

// length returns the number of characters of all expressions.
func (s *Source) length() int {
	all := utf8.RuneCountInString(s.AppliesTo)
	for _, rules := range [][]SourceRule{s.Deny, s.Allow} {
		for _, rule := range rules {
			all += utf8.RuneCountInString(rule.When)
		}
	}
	return all
}

// Problems returns the errors that were joined.
func Problems(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}
