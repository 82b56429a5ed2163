// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/served"
)

// offered returns the policy of the operation of a call in its profile. policyOf returns nil for
// a profile that does not offer the operation.
func offered[Policy any](h *Handlers, c *Call, name string, policyOf func(*profile.Compiled) *Policy) (*Policy, error) {
	p, err := h.profile(c, name)
	if err != nil {
		return nil, err
	}
	policy := policyOf(p)
	if policy == nil {
		return nil, requests.Refused(codes.FailedPrecondition, c.Operation, name, "the profile does not offer this operation")
	}
	return policy, nil
}

// profile returns the profile of a call, if the caller may use it for the operation.
func (h *Handlers) profile(c *Call, name string) (*profile.Compiled, error) {
	if err := requests.CheckProfileName(c.Operation, name); err != nil {
		return nil, err
	}
	serving := h.Served.Load()
	if serving == nil {
		return nil, status.Errorf(codes.Unavailable, "%s: no profiles are loaded yet, try again later", c.Operation)
	}
	p, ok := serving.Profiles[name]
	if ok {
		c.Counters, c.Warning, c.profile = p.Counters, p.Warning, p.Compiled
		c.set, c.revision = serving.Digest(), serving.Revision
	}
	caller, conn := flow.PeerOf(c.Context)
	c.use = profile.Use{Operation: c.Operation, Caller: caller}
	// This check comes first, so a caller does not learn the names of profiles that it may not
	// use.
	if !conn.MayUse(name) {
		return nil, requests.Refused(codes.PermissionDenied, c.Operation, name, "the container %q may use only the profiles that --caller-profiles lists for it%s", conn.Name, serving.Suggestion(c.Context, name))
	}
	if !ok {
		return nil, notServed(c, serving, name)
	}
	if policy := p.Callers(); !policy.Allows(caller) {
		return nil, requests.Refused(codes.PermissionDenied, c.Operation, name, "the profile does not allow %s", flow.DescribeCaller(c.Context, policy))
	}
	if p.Audit().Required {
		if h.Audit == nil {
			return nil, requests.Refused(codes.FailedPrecondition, c.Operation, name, "the profile requires an audit record of each call, which this broker does not write")
		}
		if c.Batched && !c.MayWait { // the call waits for its record
			return nil, ErrWaits
		}
	}
	if p.Warning != nil {
		h.Metrics.Deprecated(name, caller.Container)
	}
	if reason := p.Refusal(c.Operation); reason != "" {
		return nil, requests.Refused(codes.FailedPrecondition, c.Operation, name, "this broker requires FIPS 140-3, and %s", reason)
	}
	return p.Compiled, nil
}

// notServed returns the error for a profile that the broker does not serve. The code is
// FAILED_PRECONDITION if the profile file has the profile, because the client cannot correct
// that. Otherwise it is INVALID_ARGUMENT.
func notServed(c *Call, serving *served.Set, name string) error {
	refusal, inFile := serving.Refused(name)
	switch {
	case !inFile:
		return requests.Refused(codes.InvalidArgument, c.Operation, name, "no profile of this name is served%s", serving.Suggestion(c.Context, name))
	case refusal.Problem == "":
		return requests.Refused(codes.FailedPrecondition, c.Operation, name, "the profile is in the file, but the broker refused it when it loaded the file; the broker's log says why")
	default:
		return requests.Refused(codes.FailedPrecondition, c.Operation, name, "the profile is in the file, but the broker refused it when it loaded the file: %s", refusal.Problem)
	}
}
