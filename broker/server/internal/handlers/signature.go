// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/limits"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
)

// maxComponentKeys is the maximum number of keys that a signature may have. A hybrid signature
// has two.
const maxComponentKeys = 2

// SignatureFormat is the format that a request asks for. Its zero value asks for none.
type SignatureFormat struct {
	format profile.SignatureFormat
	given  bool
}

// RequestedFormat returns the format that a request asks for.
func RequestedFormat(format profile.SignatureFormat) SignatureFormat {
	return SignatureFormat{format, true}
}

// or returns the format to use: the format of the request, or else the format of the profile, or
// else RAW.
func (f SignatureFormat) or(policy *profile.SignaturePolicy) profile.SignatureFormat {
	if f.given {
		return f.format
	}
	format, _ := policy.Format()
	return format
}

// Sign serves SignData for every generation. It returns the name of the algorithm as well.
func (h *Handlers) Sign(c *Call, name string, sources []KeySource, format SignatureFormat, input []byte) (signature []byte, algorithm string, err error) {
	defer forgetAll(sources)
	policy, err := h.signature(c, name, sources, input)
	if err != nil {
		return nil, "", err
	}
	c.use.Algorithm, c.use.Format, c.use.GivenFormat = policy.Algorithm(), format.or(policy), format.given
	signers := make([]engine.SigningKey, len(sources))
	for i, source := range sources {
		if signers[i], err = h.signingKey(c, name, policy, source); err != nil {
			return nil, "", err
		}
		c.use.Keys[i] = engine.UsedKey(signers[i].Signer.Public(), source.ID)
		if source.ByValue {
			defer keys.Forget(signers[i].Signer)
		}
	}
	if signature, err = engine.Sign(policy, c.use.Format, signers, input); err != nil {
		return nil, "", h.engineError(c, name, err)
	}
	return signature, policy.Algorithm(), nil
}

// Verify serves VerifyData for every generation.
func (h *Handlers) Verify(c *Call, name string, sources []KeySource, format SignatureFormat, input, signature []byte) (valid bool, err error) {
	defer forgetAll(sources)
	if err := requests.CheckSize(c.Operation, "signature", len(signature), requests.MaxSignatureSize); err != nil {
		return false, err
	}
	policy, err := h.signature(c, name, sources, input)
	if err != nil {
		return false, err
	}
	c.use.Algorithm, c.use.Format, c.use.GivenFormat = policy.Algorithm(), format.or(policy), format.given
	verifiers := make([]engine.VerifyingKey, len(sources))
	for i, source := range sources {
		if verifiers[i], err = h.verifyingKey(c, name, policy, source); err != nil {
			return false, err
		}
		c.use.Keys[i] = engine.UsedKey(verifiers[i].Public, source.name().ID)
	}
	if valid, err = engine.Verify(policy, c.use.Format, verifiers, input, signature); err != nil {
		return false, h.engineError(c, name, err)
	}
	return valid, nil
}

// signature checks a request and returns its policy.
func (h *Handlers) signature(c *Call, name string, sources []KeySource, input []byte) (*profile.SignaturePolicy, error) {
	if err := requests.CheckSize(c.Operation, "input", len(input), limits.MaxInputSize); err != nil {
		return nil, err
	}
	switch n := len(sources); {
	case n == 0:
		return nil, requests.Invalid(c.Operation, "keySource", "is empty, expected single or componentKeys")
	case n > maxComponentKeys:
		return nil, requests.Invalid(c.Operation, "keySource.componentKeys", "has %d keys, expected at most %d", n, maxComponentKeys)
	}
	for _, source := range sources {
		if err := source.check(c.Operation, requests.MaxPEMSize); err != nil {
			return nil, err
		}
	}
	return offered(h, c, name, (*profile.Compiled).Signature)
}

func (h *Handlers) signingKey(c *Call, name string, policy *profile.SignaturePolicy, source KeySource) (engine.SigningKey, error) {
	if source.ByID {
		key, err := h.pair(c, name, policy.Keys(), source)
		if err != nil {
			return engine.SigningKey{}, err
		}
		// The input could be the signed part of a certificate (RFC 5280, section 4.1.1.1). Then
		// the key of an authority would issue certificates without the checks of SignCertificate.
		if key.OfAuthority() {
			return engine.SigningKey{}, requests.Refused(codes.FailedPrecondition, c.Operation, name, "the key %q belongs to a certificate authority (CA:TRUE or keyCertSign in a certificate beside the broker's keys), expected a key that signs no certificates", source.ID)
		}
		if !key.Signs() {
			return engine.SigningKey{}, requests.Refused(codes.FailedPrecondition, c.Operation, name, "the key %q has no private key, so it can only verify", source.ID)
		}
		return engine.SigningKey{Signer: key.Signer(c.contextOf(key)), Certificates: key.Certificates()}, nil
	}
	if err := source.allowRaw(c.Operation, name, policy.Keys()); err != nil {
		return engine.SigningKey{}, err
	}
	signer, err := keys.ParseSigner(source.Raw, policy.Signs().LargestGivenRSA())
	if err != nil {
		return engine.SigningKey{}, requests.Refused(codes.InvalidArgument, c.Operation, name, "%s.rawKey %v", source.Field, err)
	}
	return engine.SigningKey{Signer: signer}, nil
}

func (h *Handlers) verifyingKey(c *Call, name string, policy *profile.SignaturePolicy, source KeySource) (engine.VerifyingKey, error) {
	if source.ByID {
		key, err := h.pair(c, name, policy.Keys(), source)
		if err != nil {
			return engine.VerifyingKey{}, err
		}
		return engine.VerifyingKey{Public: key.Public(), Certificates: key.Certificates()}, nil
	}
	if err := source.allowRaw(c.Operation, name, policy.Keys()); err != nil {
		return engine.VerifyingKey{}, err
	}
	public, chain, err := keys.ParseVerifier(source.Raw, policy.Checks().LargestGivenRSA())
	if err != nil {
		return engine.VerifyingKey{}, requests.Refused(codes.InvalidArgument, c.Operation, name, "%s.rawKey %v", source.Field, err)
	}
	return engine.VerifyingKey{Public: public, Certificates: chain}, nil
}

// pair returns the key pair whose id the source has.
func (h *Handlers) pair(c *Call, name string, policy *keyrules.Policy, source KeySource) (*keys.Key, error) {
	key, err := h.key(c, name, policy, source)
	if err != nil {
		return nil, err
	}
	if key.Public() == nil {
		return nil, requests.Refused(codes.InvalidArgument, c.Operation, name, "%s.keyId names an AES key, expected a key pair", source.Field)
	}
	return key, nil
}

func forgetAll(sources []KeySource) {
	for _, source := range sources {
		source.Forget()
	}
}
