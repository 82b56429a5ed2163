// SPDX-License-Identifier: Apache-2.0

package accessexplain

import (
	"bytes"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/accesspolicy"
	keycaller "github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/tdfpolicy"
)

// Help is the help text below the name of the program.
const Help = `Shows what policies (KeyAccessPolicy) decide about a request for a data key: the
rules that decide, with file, line and column, the names of what the evaluated rules
may read, and rules that could not be evaluated. It asks no service. The rules under
access in the configuration of a service are not looked at.

The request is a JSON file with object, caller, origin and now, see
docs/key-access.md. - stands for standard input. now is the present if it is missing.

The exit code is 0 if access is permitted, 3 if it is denied, 1 if a policy is wrong,
and 2 if the request or the command line is wrong.`

// RequestUsage is the help text of the flag --request.
const RequestUsage = "`file` with the request in JSON, or -; required"

// ExitDenied is the exit code if policies deny access.
const ExitDenied = 3

// ErrDenied means that policies do not permit access to a data key. The output already says so.
var ErrDenied = errors.New("access is denied")

// Forms of the output.
const (
	Text = "text"
	JSON = "json"
)

// Options are the arguments of the command.
type Options struct {
	// Request is a file, or - for standard input.
	Request string
	// Output is Text or JSON.
	Output string
	// Policies are files.
	Policies []string
	// Modules compiles policies in Rego.
	Modules accesspolicy.CompileModule
}

// Run writes the decision of the policies. The error is [ErrDenied] if they deny.
func Run(o Options, stdin io.Reader, stdout io.Writer) error {
	asked, err := readRequest(o.Request, stdin)
	if err != nil {
		return err
	}
	var policies []*accesspolicy.Policy
	for _, name := range o.Policies {
		found, _, err := accesspolicy.ReadFile(name, o.Modules)
		if err != nil {
			return err
		}
		policies = append(policies, found...)
	}
	set, err := accesspolicy.NewSet(policies)
	if err != nil {
		return err
	}
	decision := asked.decide(set)
	if err := printDecision(stdout, o.Output, decision); err != nil {
		return err
	}
	if !decision.Permitted {
		return ErrDenied
	}
	return nil
}

// request is the request that policies decide about.
type request struct {
	Object struct {
		Attributes []string `json:"attributes"`
		Recipients []string `json:"recipients"`
		KeyID      string   `json:"keyId"`
		KeyType    string   `json:"keyType"`
	} `json:"object"`
	Caller struct {
		Issuer   string         `json:"issuer"`
		Subject  string         `json:"subject"`
		ClientID string         `json:"clientId"`
		Bound    bool           `json:"bound"`
		Claims   map[string]any `json:"claims"`
	} `json:"caller"`
	Origin struct {
		Address string `json:"address"`
		Peer    string `json:"peer"`
	} `json:"origin"`
	// Now is the present if it is missing.
	Now time.Time `json:"now"`
}

// maxRequest is the size of the largest request in bytes.
const maxRequest = 1 << 20

func readRequest(name string, stdin io.Reader) (*request, error) {
	from := stdin
	switch name {
	case "":
		return nil, program.Usagef("--request is empty, expected a file or -")
	case "-":
	default:
		file, err := os.Open(name)
		if err != nil {
			return nil, program.Usagef("--request: %v", err)
		}
		defer file.Close()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, maxRequest+1))
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if len(text) > maxRequest {
		return nil, program.Usagef("--request: found more than %d bytes", maxRequest)
	}
	asked := &request{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(asked); err != nil {
		return nil, program.Usagef("--request: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, program.Usagef("--request: found more than one JSON object")
	}
	return asked, nil
}

// decide returns the decision of the policies on the request.
func (a *request) decide(set *accesspolicy.Set) accesspolicy.Decision {
	who := keycaller.Caller{Issuer: a.Caller.Issuer, Subject: a.Caller.Subject, ClientID: a.Caller.ClientID, Claims: a.Caller.Claims}
	if a.Caller.Bound {
		who.ProofKey = &ecdsa.PublicKey{} // policies see only that there is one
	}
	object := tdfpolicy.Object{
		KeyID: a.Object.KeyID, KeyType: a.Object.KeyType, Origin: tdfpolicy.Origin{Address: a.Origin.Address, Peer: a.Origin.Peer},
		Policy: tdfpolicy.Policy{Recipients: a.Object.Recipients},
	}
	for _, attribute := range a.Object.Attributes {
		object.Policy.Attributes = append(object.Policy.Attributes, strings.ToLower(attribute)) // as the service does
	}
	now := a.Now
	if now.IsZero() {
		now = time.Now()
	}
	return set.Decide(who, object, now)
}

// decision is the decision as JSON.
type decision struct {
	Permitted bool                `json:"permitted"`
	Reason    string              `json:"reason"`
	By        []accesspolicy.Step `json:"by"`
	Applied   []string            `json:"applied"`
	Inputs    []string            `json:"inputs"`
	Problems  []problem           `json:"problems"`
}

type problem struct {
	accesspolicy.Step
	Problem string `json:"problem"`
}

func printDecision(w io.Writer, format string, d accesspolicy.Decision) error {
	shown := decision{Permitted: d.Permitted, Reason: d.Reason, By: d.By, Applied: d.Applied, Inputs: d.Inputs}
	for _, p := range d.Problems {
		shown.Problems = append(shown.Problems, problem{p.Step, p.Err.Error()})
	}
	if format == JSON {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(shown)
	}
	var text strings.Builder
	result := "denied"
	if d.Permitted {
		result = "permitted"
	}
	fmt.Fprintf(&text, "%s: %s\n", result, d.Reason)
	for _, step := range shown.By {
		fmt.Fprintf(&text, "by       %s %s %s\n", step.Policy, step.Rule, step.At)
	}
	for _, name := range shown.Applied {
		fmt.Fprintf(&text, "applied  %s\n", name)
	}
	for _, name := range shown.Inputs {
		fmt.Fprintf(&text, "input    %s\n", name)
	}
	for _, problem := range shown.Problems {
		fmt.Fprintf(&text, "problem  %s %s %s: %s\n", problem.Policy, problem.Rule, problem.At, problem.Problem)
	}
	_, err := io.WriteString(w, text.String())
	return err
}
