// SPDX-License-Identifier: Apache-2.0

package tdfpolicy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
)

// Object is a data key that a caller asks for.
type Object struct {
	// Policy is bound to the data key.
	Policy Policy
	// KeyID is the id of the key that unwrapped the data key, and KeyType the key type of the file.
	KeyID, KeyType string
	// Origin is where the request comes from.
	Origin Origin
}

// Origin is where a request comes from.
type Origin struct {
	// Address is the IP address of the other end of the connection: of the caller, of a proxy or of a peer.
	Address string
	// Peer is the URL of the service that forwards the request, or empty.
	Peer string
}

// An Authorizer decides who may have a data key.
type Authorizer interface {
	// Authorize returns nil if the caller may have the data key. The error is for the log, and
	// names no values of claims. The caller learns only that the access is denied.
	Authorize(ctx context.Context, who caller.Caller, object Object) error
	// Permits reports whether Authorize would return nil now. It records no decision.
	Permits(ctx context.Context, who caller.Caller, object Object) bool
	// Revision changes with each change of the policies. No two policies of one process have the
	// same revision.
	Revision() uint64
}

// Rules are an Authorizer that compares claims. The zero value denies everything.
type Rules struct {
	// AllowAllAuthenticated permits everything to every caller.
	AllowAllAuthenticated bool `json:"allowAllAuthenticated,omitempty"`
	// AllowWithoutAttributes permits objects without attributes to every caller that the list of
	// recipients permits.
	AllowWithoutAttributes bool `json:"allowWithoutAttributes,omitempty"`
	// RecipientClaim is the path of the claim that has to be among the recipients of a policy
	// that lists some. It is the subject if it is empty.
	RecipientClaim []string `json:"recipientClaim,omitempty"`
	// Attributes have what each attribute demands. An attribute without a rule denies.
	Attributes []Rule `json:"attributes,omitempty"`
}

// Rule says which claim an attribute demands.
type Rule struct {
	// Attribute is a fully qualified name. Its case does not count.
	Attribute string `json:"attribute"`
	// Claim is the path of a claim: its name, and names inside of objects.
	Claim []string `json:"claim"`
	// AnyOf are values, one of which the claim has, or has among its elements.
	AnyOf []string `json:"anyOf"`
}

var _ Authorizer = (*Rules)(nil)

// Check returns what is wrong with the rules.
func (r *Rules) Check() error {
	var problems []error
	if r.AllowAllAuthenticated && (r.AllowWithoutAttributes || len(r.RecipientClaim) > 0 || len(r.Attributes) > 0) {
		problems = append(problems, errors.New("allowAllAuthenticated: found true together with other rules, expected one or the other"))
	}
	if !r.AllowAllAuthenticated && !r.AllowWithoutAttributes && len(r.Attributes) == 0 {
		problems = append(problems, errors.New("found no rule, so that nobody may have a key, expected attributes, allowWithoutAttributes or allowAllAuthenticated"))
	}
	seen := map[string]bool{}
	for i, rule := range r.Attributes {
		name := strings.ToLower(rule.Attribute)
		switch {
		case name == "":
			problems = append(problems, fmt.Errorf("attributes[%d].attribute: found an empty text, expected a fully qualified name", i))
		case seen[name]:
			problems = append(problems, fmt.Errorf("attributes[%d].attribute: found %.200q a second time", i, rule.Attribute))
		}
		seen[name] = true
		if len(rule.Claim) == 0 {
			problems = append(problems, fmt.Errorf("attributes[%d].claim: found nothing, expected the path of a claim such as [clearance]", i))
		}
		if len(rule.AnyOf) == 0 {
			problems = append(problems, fmt.Errorf("attributes[%d].anyOf: found nothing, expected at least one value", i))
		}
	}
	return errors.Join(problems...)
}

// Permits implements [Authorizer].
func (r *Rules) Permits(ctx context.Context, who caller.Caller, object Object) bool {
	return r.Authorize(ctx, who, object) == nil
}

// Revision implements [Authorizer]. Rules do not change.
func (r *Rules) Revision() uint64 { return 0 }

// Authorize implements Authorizer.
func (r *Rules) Authorize(_ context.Context, who caller.Caller, object Object) error {
	if r.AllowAllAuthenticated {
		return nil
	}
	if recipients := object.Policy.Recipients; len(recipients) > 0 {
		names := []string{who.Subject}
		if len(r.RecipientClaim) > 0 {
			names = values(who.Claims, r.RecipientClaim)
		}
		if !slices.ContainsFunc(names, func(name string) bool { return slices.Contains(recipients, name) }) {
			return errors.New("the caller is not among the recipients")
		}
	}
	if len(object.Policy.Attributes) == 0 && !r.AllowWithoutAttributes {
		return errors.New("the policy has no attributes")
	}
	for _, attribute := range object.Policy.Attributes {
		if err := r.permits(who, attribute); err != nil {
			return err
		}
	}
	return nil
}

func (r *Rules) permits(who caller.Caller, attribute string) error {
	i := slices.IndexFunc(r.Attributes, func(rule Rule) bool { return strings.EqualFold(rule.Attribute, attribute) })
	if i < 0 {
		return fmt.Errorf("no rule for the attribute %.200q", attribute)
	}
	rule := r.Attributes[i]
	if !slices.ContainsFunc(values(who.Claims, rule.Claim), func(value string) bool { return slices.Contains(rule.AnyOf, value) }) {
		return fmt.Errorf("the claim %s has no value that the attribute %.200q demands", strings.Join(rule.Claim, "."), attribute)
	}
	return nil
}

// values returns the texts of a claim: a text, or the texts of a list.
func values(claims map[string]any, path []string) []string {
	var found any = claims
	for _, name := range path {
		object, ok := found.(map[string]any)
		if !ok {
			return nil
		}
		found = object[name]
	}
	switch found := found.(type) {
	case string:
		return []string{found}
	case []any:
		var texts []string
		for _, element := range found {
			if text, ok := element.(string); ok {
				texts = append(texts, text)
			}
		}
		return texts
	default:
		return nil
	}
}
