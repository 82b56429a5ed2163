// SPDX-License-Identifier: Apache-2.0

package accesspolicy

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/tdfpolicy"
)

// rulesName is the name of the rules of the configuration in decisions. They count as a further policy, which applies to everything.
const rulesName = "access"

// Authorizer decides who may have a data key. No other code does.
type Authorizer struct {
	// Policies returns the policies that are in use. It is nil if there are none.
	Policies func() *Set
	// Rules are the rules of the configuration, or nil. Access needs the permission of the rules and of the policies.
	Rules *tdfpolicy.Rules
	// Audit gets a record of each decision. It may be nil.
	Audit *audit.Log
	// Now returns the time.
	Now func() time.Time
}

var _ tdfpolicy.Authorizer = (*Authorizer)(nil)

// Authorize implements [tdfpolicy.Authorizer].
func (a *Authorizer) Authorize(ctx context.Context, who caller.Caller, object tdfpolicy.Object) error {
	d, err := a.decide(ctx, who, object)
	a.record(who, object, d, err)
	return err
}

// Permits implements [tdfpolicy.Authorizer].
func (a *Authorizer) Permits(ctx context.Context, who caller.Caller, object tdfpolicy.Object) bool {
	_, err := a.decide(ctx, who, object)
	return err == nil
}

// Revision implements [tdfpolicy.Authorizer]. The rules of the configuration do not change.
func (a *Authorizer) Revision() uint64 {
	if a.Policies == nil {
		return 0
	}
	return a.Policies().Revision()
}

// decide decides. The error says why access is denied.
func (a *Authorizer) decide(ctx context.Context, who caller.Caller, object tdfpolicy.Object) (d Decision, err error) {
	if a.Policies != nil {
		d = a.Policies().Decide(who, object, a.Now())
		if !d.Permitted && (len(d.Applied) > 0 || len(d.By) > 0) {
			err = errors.New(d.Reason)
		}
	}
	switch {
	case err != nil:
	case a.Rules != nil:
		d.By = append(d.By, Step{Policy: rulesName})
		err = a.Rules.Authorize(ctx, who, object)
		if err != nil {
			d.By = []Step{{Policy: rulesName}}
		}
	case !d.Permitted:
		err = errDenied
	}
	return d, err
}

// record writes the audit record of a decision. It has names of inputs, and no values of claims and attributes.
func (a *Authorizer) record(who caller.Caller, object tdfpolicy.Object, d Decision, denied error) {
	result := "permitted"
	if denied != nil {
		result = "denied"
	}
	var by, problems []string
	for _, step := range d.By {
		by = append(by, step.text())
	}
	for _, problem := range d.Problems {
		problems = append(problems, problem.text())
	}
	event := audit.NewEvent("key-access").Text("result", result).Text("user.issuer", who.Issuer).Text("user.name", who.Subject).
		Text("object.policy", object.Policy.ID).Text("key.id", object.KeyID).
		Text("rules", strings.Join(by, " ")).Text("rules.failed", strings.Join(problems, " ")).Text("inputs", strings.Join(d.Inputs, " "))
	a.Audit.AddEvent(event)
}

// text returns the policy and the rule.
func (s Step) text() string {
	if s.Rule == "" {
		return s.Policy
	}
	return s.Policy + "/" + s.Rule
}
