// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"errors"

	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
	"github.com/crypto-broker/crypto-broker-operator/broker/session"
)

// InitSession serves InitSession.
func (h *Handlers) InitSession(c *Call, name string, in session.Init) (session.Begun, error) {
	policy, owner, err := h.session(c, name)
	if err != nil {
		return session.Begun{}, err
	}
	begun, err := h.Sessions.Begin(owner, policy, in)
	if err != nil {
		return session.Begun{}, h.sessionError(c, name, err)
	}
	c.use.Algorithm = begun.Protocol.String()
	return begun, nil
}

// OpenRequest serves OpenRequest. The plaintext is overwritten when the reply is written.
func (h *Handlers) OpenRequest(c *Call, name string, request *session.Request) (session.Opened, error) {
	if err := requests.CheckSize(c.Operation, "body", len(request.Body), flow.MaxInputSize); err != nil {
		return session.Opened{}, err
	}
	policy, owner, err := h.session(c, name)
	if err != nil {
		return session.Opened{}, err
	}
	opened, err := h.Sessions.Open(owner, policy, request)
	if err != nil {
		return session.Opened{}, h.sessionError(c, name, err)
	}
	c.overwriteLater(opened.Plaintext)
	c.use.Algorithm = opened.Protocol.String()
	return opened, nil
}

// SealReply serves SealReply.
func (h *Handlers) SealReply(c *Call, name, id, path string, plaintext []byte) (session.Reply, error) {
	if err := requests.CheckSize(c.Operation, "plaintext", len(plaintext), flow.MaxInputSize); err != nil {
		return session.Reply{}, err
	}
	policy, owner, err := h.session(c, name)
	if err != nil {
		return session.Reply{}, err
	}
	reply, err := h.Sessions.Seal(owner, policy, id, path, plaintext)
	if err != nil {
		return session.Reply{}, h.sessionError(c, name, err)
	}
	c.use.Algorithm = reply.Protocol.String()
	return reply, nil
}

// CloseSession serves CloseSession.
func (h *Handlers) CloseSession(c *Call, name, id string) error {
	_, owner, err := h.session(c, name)
	if err != nil {
		return err
	}
	if protocol, found := h.Sessions.End(owner, id); found {
		c.use.Algorithm = protocol.String()
	}
	return nil
}

// session returns the policy of a call, and who may use its session.
func (h *Handlers) session(c *Call, name string) (*profile.SessionPolicy, session.Owner, error) {
	policy, err := offered(h, c, name, (*profile.Compiled).Session)
	if err != nil {
		return nil, session.Owner{}, err
	}
	caller, conn := flow.PeerOf(c.Context)
	return policy, session.Owner{Caller: caller, Socket: conn.Name, Profile: name}, nil
}

// sessionPolicy returns what a profile of the set says about sessions of an owner, nil if the owner may
// have none.
func (s *ServedSet) sessionPolicy(owner session.Owner) *profile.SessionPolicy {
	p, ok := s.Profiles[owner.Profile]
	if !ok || p.refusals != nil && p.refusals[profile.OpOpenRequest] != "" || !p.Callers().Allows(owner.Caller) {
		return nil
	}
	return p.Session()
}

// sessionError returns the error for the client that an error of the store becomes. All reasons to
// refuse an encrypted request have one code and one sentence.
func (h *Handlers) sessionError(c *Call, name string, err error) error {
	var input *session.InputError
	switch {
	case errors.As(err, &input):
		return requests.Invalid(c.Operation, input.Field, "%s", input.Problem)
	case errors.Is(err, session.ErrRefused):
		return requests.Refused(codes.InvalidArgument, c.Operation, name, "the request is not authentic, not of a session of this caller, out of the clock window, or was opened before")
	case errors.Is(err, session.ErrEnded):
		return requests.Refused(codes.FailedPrecondition, c.Operation, name, "this caller has no such session, or it has ended, or has sealed as many replies as it may")
	case errors.Is(err, session.ErrFull):
		return requests.Refused(codes.ResourceExhausted, c.Operation, name, "the socket has as many sessions as it may; try again when some have ended")
	case errors.Is(err, session.ErrBusy):
		return requests.Refused(codes.ResourceExhausted, c.Operation, name, "the session or its socket has opened as many requests within the clock window as it may; try again later")
	default:
		return h.internal(c, name, "a session failed", err)
	}
}
