// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/hex"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
)

// hash serves HashData for every generation: it appends the digest of the input to
// dst and names the algorithm.
func (s *Server) hash(c *call, dst []byte, name string, input []byte) (digest []byte, algorithm string, err error) {
	if err := checkSize(c.op, "input", len(input), flow.MaxInputSize); err != nil {
		return nil, "", err
	}
	policy, err := s.hashPolicy(c, name)
	if err != nil {
		return nil, "", err
	}
	return engine.AppendDigest(dst, policy, input), policy.Algorithm().String(), nil
}

// hashPolicy finds what a profile says about HashData.
func (s *Server) hashPolicy(c *call, name string) (*profile.HashPolicy, error) {
	p, err := s.profile(c, name)
	if err != nil {
		return nil, err
	}
	policy := p.Hash()
	if policy == nil {
		return nil, refused(codes.FailedPrecondition, c.op, name, "the profile does not offer this operation")
	}
	return policy, nil
}

// profile finds the profile of a call and checks that the caller may use it.
func (s *Server) profile(c *call, name string) (*profile.Compiled, error) {
	if err := checkProfileName(c.op, name); err != nil {
		return nil, err
	}
	serving := s.serving.Load()
	if serving == nil {
		return nil, status.Errorf(codes.Unavailable, "%s: no profiles are loaded yet, try again later", c.op)
	}
	p, ok := serving.profiles[name]
	if ok {
		c.counters, c.warning, c.profile = p.counters, p.warning, p.Compiled
	}
	// First, so that a caller does not learn of profiles that it may not use.
	if conn := flow.ConnOf(c.ctx); !conn.MayUse(name) {
		return nil, refused(codes.PermissionDenied, c.op, name, "the container %q may not use it, but only those that --caller-profiles lists for it%s", conn.Name, serving.meant(c, name))
	}
	if !ok {
		return nil, notServed(c, serving, name)
	}
	if policy := p.Callers(); policy != nil && !policy.Allows(flow.CallerOf(c.ctx)) {
		return nil, refused(codes.PermissionDenied, c.op, name, "the profile does not allow %s", flow.DescribeCaller(c.ctx, policy))
	}
	if p.warning != nil {
		s.metrics.Deprecated(name, flow.CallerOf(c.ctx).Container)
	}
	if p.refusals != nil && p.refusals[c.op] != "" {
		return nil, refused(codes.FailedPrecondition, c.op, name, "this broker requires FIPS 140-3, and %s", p.refusals[c.op])
	}
	if p.AuditRequired() {
		return nil, refused(codes.FailedPrecondition, c.op, name, "the profile requires an audit record of each call, which brokers of this version do not write; the profile serves once its Audit.Required is false")
	}
	return p.Compiled, nil
}

// notServed tells why there is no profile of this name. One that the file has is
// not for the caller to mend, and says so by another code.
func notServed(c *call, serving *serving, name string) error {
	refusal, inFile := serving.set.Refused(name)
	switch {
	case !inFile:
		return refused(codes.InvalidArgument, c.op, name, "no profile of this name is served%s", serving.meant(c, name))
	case refusal.Problem == "":
		return refused(codes.FailedPrecondition, c.op, name, "the profile is in the file but was refused when that was loaded; the broker's log says why")
	default:
		return refused(codes.FailedPrecondition, c.op, name, "the profile is in the file but was refused when that was loaded: %s", refusal.Problem)
	}
}

// hexadecimal renders a digest in lower-case digits.
func hexadecimal(digest []byte) string {
	var buffer [2 * engine.MaxDigestSize]byte
	return string(hex.AppendEncode(buffer[:0], digest))
}
