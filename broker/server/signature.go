// SPDX-License-Identifier: Apache-2.0

package server

import (
	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
)

// maxComponentKeys is how many keys a signature has: a hybrid has two.
const maxComponentKeys = 2

// signatureFormat is the format that a request asks for, or none.
type signatureFormat struct {
	format profile.SignatureFormat
	given  bool
}

// or returns the format to use: that of the request, else that of the profile,
// else RAW.
func (f signatureFormat) or(policy *profile.SignaturePolicy) profile.SignatureFormat {
	if f.given {
		return f.format
	}
	format, _ := policy.Format()
	return format
}

// signData serves SignData for every generation; it names the algorithm.
func (s *Server) signData(c *call, name string, sources []keySource, format signatureFormat, input []byte) (signature []byte, algorithm string, err error) {
	defer forgetAll(sources)
	policy, err := s.signature(c, name, sources, input)
	if err != nil {
		return nil, "", err
	}
	signers := make([]engine.SigningKey, len(sources))
	for i, source := range sources {
		if signers[i], err = s.signingKey(c, name, policy, source); err != nil {
			return nil, "", err
		}
		if source.byValue {
			defer keys.Forget(signers[i].Signer)
		}
	}
	if signature, err = engine.Sign(policy, format.or(policy), signers, input); err != nil {
		return nil, "", s.engineError(c, name, err)
	}
	return signature, policy.Algorithm(), nil
}

// verifyData serves VerifyData for every generation.
func (s *Server) verifyData(c *call, name string, sources []keySource, format signatureFormat, input, signature []byte) (valid bool, err error) {
	defer forgetAll(sources)
	if err := checkSize(c.op, "signature", len(signature), maxSignatureSize); err != nil {
		return false, err
	}
	policy, err := s.signature(c, name, sources, input)
	if err != nil {
		return false, err
	}
	verifiers := make([]engine.VerifyingKey, len(sources))
	for i, source := range sources {
		if verifiers[i], err = s.verifyingKey(c, name, policy, source); err != nil {
			return false, err
		}
	}
	if valid, err = engine.Verify(policy, format.or(policy), verifiers, input, signature); err != nil {
		return false, s.engineError(c, name, err)
	}
	return valid, nil
}

// signature checks a request and finds its policy.
func (s *Server) signature(c *call, name string, sources []keySource, input []byte) (*profile.SignaturePolicy, error) {
	if err := checkSize(c.op, "input", len(input), flow.MaxInputSize); err != nil {
		return nil, err
	}
	switch n := len(sources); {
	case n == 0:
		return nil, invalid(c.op, "keySource", "is empty, expected single or componentKeys")
	case n > maxComponentKeys:
		return nil, invalid(c.op, "keySource.componentKeys", "has %d keys, expected at most %d", n, maxComponentKeys)
	}
	for _, source := range sources {
		if err := source.check(c.op, maxPEMSize); err != nil {
			return nil, err
		}
	}
	p, err := s.profile(c, name)
	if err != nil {
		return nil, err
	}
	policy := p.Signature()
	if policy == nil {
		return nil, refused(codes.FailedPrecondition, c.op, name, "the profile does not offer this operation")
	}
	return policy, nil
}

func (s *Server) signingKey(c *call, name string, policy *profile.SignaturePolicy, source keySource) (engine.SigningKey, error) {
	if source.byID {
		key, err := s.pair(c, name, policy.Keys(), source)
		if err != nil {
			return engine.SigningKey{}, err
		}
		// What it signs could be a certificate: the part of one that is signed is
		// data like any other.
		if key.OfAuthority() {
			return engine.SigningKey{}, refused(codes.FailedPrecondition, c.op, name, "the key %q is that of a certificate authority, by CA:TRUE or keyCertSign in a certificate beside the broker's keys, expected a key that signs no certificates", source.id)
		}
		if key.Signer() == nil {
			return engine.SigningKey{}, refused(codes.FailedPrecondition, c.op, name, "the key %q has no private key here, so that it only verifies", source.id)
		}
		return engine.SigningKey{Signer: key.Signer(), Certificates: key.Certificates()}, nil
	}
	if err := source.allowRaw(c.op, name, policy.Keys()); err != nil {
		return engine.SigningKey{}, err
	}
	signer, err := keys.ParseSigner(source.raw, policy.Signs().LargestGivenRSA())
	if err != nil {
		return engine.SigningKey{}, refused(codes.InvalidArgument, c.op, name, "%s.rawKey %v", source.field, err)
	}
	return engine.SigningKey{Signer: signer}, nil
}

func (s *Server) verifyingKey(c *call, name string, policy *profile.SignaturePolicy, source keySource) (engine.VerifyingKey, error) {
	if source.byID {
		key, err := s.pair(c, name, policy.Keys(), source)
		if err != nil {
			return engine.VerifyingKey{}, err
		}
		return engine.VerifyingKey{Public: key.Public(), Certificates: key.Certificates()}, nil
	}
	if err := source.allowRaw(c.op, name, policy.Keys()); err != nil {
		return engine.VerifyingKey{}, err
	}
	public, chain, err := keys.ParseVerifier(source.raw, policy.Checks().LargestGivenRSA())
	if err != nil {
		return engine.VerifyingKey{}, refused(codes.InvalidArgument, c.op, name, "%s.rawKey %v", source.field, err)
	}
	return engine.VerifyingKey{Public: public, Certificates: chain}, nil
}

// pair finds a key pair by its id.
func (s *Server) pair(c *call, name string, policy *profile.KeyPolicy, source keySource) (*keys.Key, error) {
	key, err := s.key(c, name, policy, source)
	if err != nil {
		return nil, err
	}
	if key.Public() == nil {
		return nil, refused(codes.InvalidArgument, c.op, name, "%s.keyId names an AES key, expected a key pair", source.field)
	}
	return key, nil
}

func forgetAll(sources []keySource) {
	for _, source := range sources {
		source.forget()
	}
}
