// SPDX-License-Identifier: Apache-2.0

package accesspolicy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Kind and APIVersion are the fields of those names in a document.
const (
	Kind       = "KeyAccessPolicy"
	APIVersion = "cryptobroker.io/v1alpha1"
)

const (
	// maxDocuments is the number of bytes of all documents of a file, maxPolicies the number of policies, and maxRules the
	// number of rules that allow, and of those that deny, in a policy.
	maxDocuments, maxPolicies, maxRules = 256 << 10, 64, 64
	// maxNodes is the number of values in a document.
	maxNodes = 4096
)

// Policy is a policy that was compiled.
type Policy struct {
	// Name is unique in a set.
	Name        string
	appliesTo   *rule // nil if it applies to everything
	deny, allow []rule
}

type rule struct {
	policy, name string
	// at is the place of the expression: file, line and column.
	at string
	Condition
}

// Parse compiles the policies of a file of YAML documents. The error has a sentence for each problem, which begins with the name
// of the file, line and column. modules compiles modules in Rego.
func Parse(file string, text []byte, modules CompileModule) ([]*Policy, error) {
	if len(text) > maxDocuments {
		return nil, fmt.Errorf("%s: found more than %d bytes", file, maxDocuments)
	}
	r := &reader{file: file, modules: modules}
	var policies []*Policy
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, errors.Join(append(r.problems, err)...))
		}
		if len(policies) == maxPolicies {
			return nil, fmt.Errorf("%s: found more than %d policies", file, maxPolicies)
		}
		policies = append(policies, r.policy(&document))
	}
	if len(policies) == 0 {
		return nil, fmt.Errorf("%s: found no document, expected one of the kind %s", file, Kind)
	}
	if len(r.problems) > 0 {
		return nil, errors.Join(r.problems...)
	}
	return policies, nil
}

var (
	errNoRule    = errors.New("found no rule, expected rules that allow or deny")
	errBoth      = errors.New("found a module in Rego together with rules, expected one or the other")
	errRegoIsOff = errors.New("found a module in Rego, which is off: the chart's value keyAccess.rego turns it on, or the flag --rego of the service")
)

// reader reads documents, and collects their problems.
type reader struct {
	file     string
	modules  CompileModule
	problems []error
}

func (r *reader) at(n *yaml.Node) string { return fmt.Sprintf("%s:%d:%d", r.file, n.Line, n.Column) }

func (r *reader) wrong(n *yaml.Node, path, format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("%s: %s: "+format, append([]any{r.at(n), path}, args...)...))
}

var policyName = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$`)

func (r *reader) policy(document *yaml.Node) *Policy {
	p := &Policy{}
	nodes := maxNodes
	if bad := unusable(document, &nodes); bad != nil {
		r.wrong(bad, "document", "found an alias, or more than %d values, expected neither", maxNodes)
		return p
	}
	root := document.Content[0]
	r.object(root, "document", []string{"apiVersion", "kind", "metadata", "spec"}, func(name string, n *yaml.Node) {
		switch name {
		case "apiVersion":
			r.equals(n, name, APIVersion)
		case "kind":
			r.equals(n, name, Kind)
		case "metadata":
			r.object(n, name, []string{"name"}, func(_ string, n *yaml.Node) {
				if p.Name = r.text(n, "metadata.name"); !policyName.MatchString(p.Name) {
					r.wrong(n, "metadata.name", "found %.80q, expected lower case letters, digits, - and .", p.Name)
				}
			})
		case "spec":
			r.spec(n, p)
		}
	})
	for i := range p.deny {
		p.deny[i].policy = p.Name
	}
	for i := range p.allow {
		p.allow[i].policy = p.Name
	}
	if p.appliesTo != nil {
		p.appliesTo.policy = p.Name
	}
	return p
}

func (r *reader) spec(n *yaml.Node, p *Policy) {
	var module *yaml.Node
	r.object(n, "spec", []string{"appliesTo?", "deny?", "allow?", "rego?"}, func(name string, n *yaml.Node) {
		switch name {
		case "appliesTo":
			if e := r.expression(n, "spec.appliesTo"); e != nil {
				p.appliesTo = &rule{name: name, at: r.at(n), Condition: e}
			}
		case "deny":
			p.deny = r.rules(n, "spec.deny")
		case "allow":
			p.allow = r.rules(n, "spec.allow")
		case "rego":
			module = n
		}
	})
	if module != nil {
		r.module(module, p)
	}
	if n.Kind == yaml.MappingNode && len(p.deny)+len(p.allow) == 0 && len(r.problems) == 0 {
		r.wrong(n, "spec", "%w", errNoRule)
	}
}

// module compiles a module in Rego.
func (r *reader) module(n *yaml.Node, p *Policy) {
	const path = "spec.rego"
	text := r.text(n, path)
	switch {
	case text == "":
	case r.modules == nil:
		r.wrong(n, path, "%w", errRegoIsOff)
	case len(p.deny)+len(p.allow) > 0:
		r.wrong(n, path, "%w", errBoth)
	default:
		for _, problem := range Problems(p.setModule(text, r.at(n), r.modules)) {
			r.wrong(n, path, "%w", problem)
		}
	}
}

// setModule compiles a module, which has the rules of the policy.
func (p *Policy) setModule(text, at string, modules CompileModule) error {
	m, err := modules(text)
	if err != nil {
		return err
	}
	if m.Deny != nil {
		p.deny = []rule{{policy: p.Name, name: "deny", at: at, Condition: m.Deny}}
	}
	p.allow = []rule{{policy: p.Name, name: "allow", at: at, Condition: m.Allow}}
	return nil
}

func (r *reader) rules(n *yaml.Node, path string) []rule {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 || len(n.Content) > maxRules {
		r.wrong(n, path, "expected a list of 1 to %d rules", maxRules)
		return nil
	}
	var rules []rule
	for i, element := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		var found rule
		r.object(element, at, []string{"name", "when"}, func(name string, n *yaml.Node) {
			if name == "when" {
				found.Condition, found.at = r.expression(n, at+".when"), r.at(n)
				return
			}
			if found.name = r.text(n, at+".name"); !policyName.MatchString(found.name) {
				r.wrong(n, at+".name", "found %.80q, expected lower case letters, digits, - and .", found.name)
			}
		})
		if found.name != "" && slices.ContainsFunc(rules, func(other rule) bool { return other.name == found.name }) {
			r.wrong(element, at+".name", "found %.80q a second time", found.name)
		}
		rules = append(rules, found)
	}
	return rules
}

// expression compiles an expression. It is nil if something is wrong.
func (r *reader) expression(n *yaml.Node, path string) *expression {
	text := r.text(n, path)
	if text == "" {
		return nil
	}
	e, err := compile(text)
	if err != nil {
		r.wrong(n, path, "%w", err)
		return nil
	}
	return e
}

// text returns a text that is not empty.
func (r *reader) text(n *yaml.Node, path string) string {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || strings.TrimSpace(n.Value) == "" {
		r.wrong(n, path, "expected a text that is not empty")
		return ""
	}
	return n.Value
}

func (r *reader) equals(n *yaml.Node, path, expected string) {
	if n.Kind != yaml.ScalarNode || n.Value != expected {
		r.wrong(n, path, "found %.80q, expected %s", n.Value, expected)
	}
}

// object calls a function for each field of an object. A field whose name ends in ? may be missing.
func (r *reader) object(n *yaml.Node, path string, fields []string, read func(name string, n *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.wrong(n, path, "expected an object")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		switch {
		case !slices.Contains(fields, name) && !slices.Contains(fields, name+"?") || n.Content[i].Kind != yaml.ScalarNode:
			r.wrong(n.Content[i], path, "found the unknown field %.80q", name)
		case seen[name]:
			r.wrong(n.Content[i], path, "found the field %q a second time", name)
		default:
			seen[name] = true
			read(name, n.Content[i+1])
		}
	}
	for _, name := range fields {
		if !strings.HasSuffix(name, "?") && !seen[name] {
			r.wrong(n, path, "expected the field %q", name)
		}
	}
}

// unusable returns the first alias, because aliases could make a small file large, or the first value
// beyond the limit left.
func unusable(n *yaml.Node, left *int) *yaml.Node {
	if *left--; *left < 0 || n.Kind == yaml.AliasNode {
		return n
	}
	for _, child := range n.Content {
		if bad := unusable(child, left); bad != nil {
			return bad
		}
	}
	return nil
}
