// SPDX-License-Identifier: Apache-2.0

package main

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

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/accesspolicy"
	keycaller "github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/policy"
)

func newAccess() *cobra.Command {
	cmd := &cobra.Command{Use: "access", Short: "Try policies of the key access service"}
	cmd.AddCommand(newAccessExplain())
	return cmd
}

// accessRequest is what policies are tried with.
type accessRequest struct {
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

// maxAccessRequest is the size of the largest request in bytes.
const maxAccessRequest = 1 << 20

func newAccessExplain() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain --request FILE POLICY...",
		Short: "Show what policies decide about a request for a data key, and why",
		Long: `Shows what policies (KeyAccessPolicy) decide about a request for a data key: the
rules that decide, with file, line and column, the names of what the evaluated rules
may read, and rules that could not be evaluated. It asks no service. The rules under
access in the configuration of a service are not looked at. Policies may be in Rego,
whether the service permits it or not.

The request is a JSON file with object, caller, origin and now, see
docs/key-access.md. - stands for standard input. now is the present if it is missing.

The exit code is 0 if access is permitted, 3 if it is denied, 1 if a policy is wrong,
and 2 if the request or the command line is wrong.`,
		Example: `  crypto-broker access explain --request request.json policies/*.yaml`,
		Args:    commandline.Arguments(1, -1, "at least one file of policies"),
	}
	output := commandline.ChoiceFlag(cmd, "output", "o", "text or json", commandline.FormatText, commandline.FormatJSON)
	file := cmd.Flags().String("request", "", "`file` with the request in JSON, or -; required")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		asked, err := readAccessRequest(*file, cmd.InOrStdin())
		if err != nil {
			return err
		}
		var policies []*accesspolicy.Policy
		for _, name := range args {
			found, _, err := accesspolicy.ReadFile(name, true)
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
		if err := printDecision(cmd.OutOrStdout(), output.Value, decision); err != nil {
			return err
		}
		if !decision.Permitted {
			return errAccessDenied
		}
		return nil
	}
	return cmd
}

func readAccessRequest(name string, stdin io.Reader) (*accessRequest, error) {
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
	text, err := io.ReadAll(io.LimitReader(from, maxAccessRequest+1))
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if len(text) > maxAccessRequest {
		return nil, program.Usagef("--request: found more than %d bytes", maxAccessRequest)
	}
	asked := &accessRequest{}
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

// decide returns what policies say of the request.
func (a *accessRequest) decide(set *accesspolicy.Set) accesspolicy.Decision {
	who := keycaller.Caller{Issuer: a.Caller.Issuer, Subject: a.Caller.Subject, ClientID: a.Caller.ClientID, Claims: a.Caller.Claims}
	if a.Caller.Bound {
		who.ProofKey = &ecdsa.PublicKey{} // policies see only that there is one
	}
	object := policy.Object{
		KeyID: a.Object.KeyID, KeyType: a.Object.KeyType, Origin: policy.Origin{Address: a.Origin.Address, Peer: a.Origin.Peer},
		Policy: policy.Policy{Recipients: a.Object.Recipients},
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

// accessDecision is the decision as JSON.
type accessDecision struct {
	Permitted bool                `json:"permitted"`
	Reason    string              `json:"reason"`
	By        []accesspolicy.Step `json:"by"`
	Applied   []string            `json:"applied"`
	Inputs    []string            `json:"inputs"`
	Problems  []accessProblem     `json:"problems"`
}

type accessProblem struct {
	accesspolicy.Step
	Problem string `json:"problem"`
}

func printDecision(w io.Writer, format string, d accesspolicy.Decision) error {
	shown := accessDecision{Permitted: d.Permitted, Reason: d.Reason, By: d.By, Applied: d.Applied, Inputs: d.Inputs}
	for _, problem := range d.Problems {
		shown.Problems = append(shown.Problems, accessProblem{problem.Step, problem.Err.Error()})
	}
	if format == commandline.FormatJSON {
		return commandline.WriteJSON(w, shown)
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
