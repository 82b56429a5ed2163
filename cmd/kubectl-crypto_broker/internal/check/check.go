// SPDX-License-Identifier: Apache-2.0

// Package check finds out whether an installation of the operator works. It makes one check after
// the other, and reports a state and a sentence for each. It changes nothing, because it creates
// objects only as dry runs. It reads no content of Secrets.
package check

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
)

// State is the result of a check.
type State string

// States of a finding.
const (
	// OK means that the check found no problem.
	OK State = "OK"
	// Warning means that brokers are injected and profiles are served, but that somebody should
	// look at the finding.
	Warning State = "WARNING"
	// Failed means that something does not work.
	Failed State = "FAILED"
	// Skipped means that the check could not be made.
	Skipped State = "SKIPPED"
)

// Finding is the result of one check, with a sentence.
type Finding struct {
	// Check is the name of the check.
	Check string `json:"check"`
	State State  `json:"state"`
	// Found says what was found, and what to do if it is a problem.
	Found string `json:"found"`
}

// Checker asks a cluster.
type Checker struct {
	Client kubernetes.Interface
	// Version is the version of the plugin.
	Version string
	// Namespace is where dry runs are created.
	Namespace string
	// OperatorNamespace is the namespace of the operator. If it is empty, the webhooks name the namespace.
	OperatorNamespace string

	operator installation.Operator
	// made is a pod with a broker from a dry run, or nil.
	made *corev1.Pod
	// answered reports whether a webhook of the operator has answered the API server.
	answered bool
	// unreached is the message of an API server that could not call the operator.
	unreached string
}

// Run makes all checks, in the order in which they depend on each other.
func (c *Checker) Run(ctx context.Context) ([]Finding, error) {
	var err error
	if c.operator, err = installation.Find(ctx, c.Client, c.OperatorNamespace); err != nil {
		return nil, err
	}
	var findings []Finding
	for _, question := range []struct {
		name string
		ask  func(context.Context) (State, string)
	}{
		{"definitions", c.definitions},
		{"operator", c.replicas},
		{"leader", c.leader},
		{"service", c.service},
		{"webhooks", c.webhooks},
		{"injection", c.injection},
		{"validation", c.validation},
		{"certificate", c.certificate},
		{"signing key", c.signingKey},
		{"policies", c.policies},
		{"template", c.template},
		{"namespaces", c.namespaces},
		{"profiles", c.profiles},
		{"versions", c.versions},
	} {
		state, found := question.ask(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		findings = append(findings, Finding{question.name, state, found})
	}
	return findings, nil
}

// cannotTell is the result of a check that an error has prevented.
func cannotTell(what string, err error) (State, string) {
	return Skipped, fmt.Sprintf("cannot tell %s: %s", what, apierror.OneLine(apierror.Plain(err)))
}

// worse returns the worse of two states.
func worse(a, b State) State {
	rank := map[State]int{OK: 0, Warning: 1, Skipped: 2, Failed: 3}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

// answer collects the sentences of a check and the worst of their states.
type answer struct {
	state State
	found []string
}

func (a *answer) add(state State, format string, args ...any) {
	if a.state == "" {
		a.state = OK
	}
	a.state, a.found = worse(a.state, state), append(a.found, fmt.Sprintf(format, args...))
}
