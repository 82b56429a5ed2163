// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/limits"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
	"github.com/crypto-broker/crypto-broker-operator/broker/session"
)

// initNative serves InitSession for the native versions of the protocol.
func (h *Handlers) initNative(c *Call, name string, policy *profile.SessionPolicy, owner session.Owner, in session.Init) (session.Begun, error) {
	var key engine.SigningKey
	var signed error
	begun, err := h.Sessions.BeginNative(owner, policy, in, func(transcript []byte) (signature []byte, err error) {
		key, signature, signed = h.signSession(c, name, policy, transcript)
		return signature, signed
	})
	switch {
	case signed != nil:
		return session.Begun{}, signed
	case err != nil:
		return session.Begun{}, h.sessionError(c, name, err)
	}
	_, id := policy.Signing()
	c.use.Keys[0] = engine.UsedKey(key.Signer.Public(), id)
	return begun, nil
}

// signSession signs with the key of a profile for sessions. The request does not name the key, so
// a problem of the key is FAILED_PRECONDITION.
func (h *Handlers) signSession(c *Call, name string, policy *profile.SessionPolicy, transcript []byte) (engine.SigningKey, []byte, error) {
	signing, id := policy.Signing()
	key, err := h.signingKey(c, name, signing, KeySource{Field: "API.Session.KeyIds", ByID: true, ID: id})
	if err != nil {
		return key, nil, ofProfile(err)
	}
	format, _ := signing.Format()
	signature, err := engine.Sign(signing, format, []engine.SigningKey{key}, transcript)
	if err != nil {
		return key, nil, ofProfile(h.engineError(c, name, err))
	}
	return key, signature, nil
}

// ofProfile converts an error about a key to FAILED_PRECONDITION, because the profile names the
// key.
func ofProfile(err error) error {
	switch status.Code(err) {
	case codes.NotFound, codes.InvalidArgument:
		return status.Error(codes.FailedPrecondition, status.Convert(err).Message())
	default:
		return err
	}
}

// RekeySession serves RekeySession.
func (h *Handlers) RekeySession(c *Call, name string, request *session.Request) (session.Opened, error) {
	if err := requests.CheckSize(c.Operation, "body", len(request.Body), limits.MaxInputSize); err != nil {
		return session.Opened{}, err
	}
	policy, owner, err := h.session(c, name)
	if err != nil {
		return session.Opened{}, err
	}
	opened, err := h.Sessions.Rekey(owner, policy, request)
	if err != nil {
		return session.Opened{}, h.sessionError(c, name, err)
	}
	c.use.Algorithm = opened.Protocol.String()
	return opened, nil
}
