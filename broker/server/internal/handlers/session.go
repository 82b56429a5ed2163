// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/limits"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
	"github.com/crypto-broker/crypto-broker-operator/broker/session"
)

// InitSession serves InitSession.
func (h *Handlers) InitSession(c *Call, name string, in session.Init) (session.Begun, error) {
	policy, owner, err := h.session(c, name)
	if err != nil {
		return session.Begun{}, err
	}
	var begun session.Begun
	if _, native := algorithm.NativeSession(in.KeyAgreement); native {
		begun, err = h.initNative(c, name, policy, owner, in)
	} else if begun, err = h.Sessions.Begin(c.untilDeadline(), owner, policy, in); err != nil {
		err = h.sessionError(c, name, err)
	}
	if err != nil {
		return session.Begun{}, err
	}
	c.use.Algorithm = begun.Protocol.String()
	// Nobody could end the session, because nobody would know its id.
	c.undo = func() { _, _ = h.Sessions.End(context.WithoutCancel(c.Context), owner, policy, begun.ID) } // without Redis, it expires
	return begun, nil
}

// OpenRequest serves OpenRequest. The plaintext is overwritten when the reply is written.
func (h *Handlers) OpenRequest(c *Call, name string, request *session.Request) (session.Opened, error) {
	if err := requests.CheckSize(c.Operation, "body", len(request.Body), limits.MaxInputSize); err != nil {
		return session.Opened{}, err
	}
	policy, owner, err := h.session(c, name)
	if err != nil {
		return session.Opened{}, err
	}
	opened, err := h.Sessions.Open(c.untilDeadline(), owner, policy, request)
	if err != nil {
		return session.Opened{}, h.sessionError(c, name, err)
	}
	c.overwriteLater(opened.Plaintext)
	c.use.Algorithm = opened.Protocol.String()
	return opened, nil
}

// SealReply serves SealReply. sequence is empty in versions 1 and 2 of the protocol.
func (h *Handlers) SealReply(c *Call, name, id, path, sequence string, plaintext []byte) (session.Reply, error) {
	if err := requests.CheckSize(c.Operation, "plaintext", len(plaintext), limits.MaxInputSize); err != nil {
		return session.Reply{}, err
	}
	policy, owner, err := h.session(c, name)
	if err != nil {
		return session.Reply{}, err
	}
	var reply session.Reply
	if sequence == "" {
		reply, err = h.Sessions.Seal(c.untilDeadline(), owner, policy, id, path, plaintext)
	} else {
		reply, err = h.Sessions.SealNative(owner, policy, id, path, sequence, plaintext)
	}
	if err != nil {
		return session.Reply{}, h.sessionError(c, name, err)
	}
	c.use.Algorithm = reply.Protocol.String()
	return reply, nil
}

// CloseSession serves CloseSession.
func (h *Handlers) CloseSession(c *Call, name, id string) error {
	policy, owner, err := h.session(c, name)
	if err != nil {
		return err
	}
	protocol, err := h.Sessions.End(c.untilDeadline(), owner, policy, id)
	if err != nil {
		return h.sessionError(c, name, err)
	}
	c.use.Algorithm = protocol.String()
	return nil
}

// session returns the policy of a call, and the owner of its session. The error is [ErrWaits] if
// the session is in Redis and the call must not wait.
func (h *Handlers) session(c *Call, name string) (*profile.SessionPolicy, session.Owner, error) {
	policy, err := offered(h, c, name, (*profile.Compiled).Session)
	if err != nil {
		return nil, session.Owner{}, err
	}
	if policy.Shared() && !c.MayWait {
		return nil, session.Owner{}, ErrWaits
	}
	caller, conn := flow.PeerOf(c.Context)
	return policy, session.Owner{Caller: caller, Socket: conn.Name, Profile: name}, nil
}

// sessionError converts an error of the store to the error for the client. All reasons to refuse
// an encrypted request have the same code and the same sentence.
func (h *Handlers) sessionError(c *Call, name string, err error) error {
	var input *session.InputError
	switch {
	case errors.As(err, &input):
		return requests.Invalid(c.Operation, input.Field, "%s", input.Problem)
	case errors.Is(err, session.ErrRefused):
		return requests.Refused(codes.InvalidArgument, c.Operation, name, "the request is not authentic, belongs to no session of this caller, is outside the clock window, or was opened before")
	case errors.Is(err, session.ErrEnded):
		return requests.Refused(codes.FailedPrecondition, c.Operation, name, "this caller has no such session, or it has ended, has sealed its maximum number of replies, or has another key than the request had")
	case errors.Is(err, session.ErrFull):
		return requests.Refused(codes.ResourceExhausted, c.Operation, name, "the socket has its maximum number of sessions; try again when some have ended")
	case errors.Is(err, session.ErrBusy):
		return requests.Refused(codes.ResourceExhausted, c.Operation, name, "the session or its socket has opened the maximum number of requests within the clock window; try again later")
	case errors.Is(err, session.ErrNoShared):
		return requests.Refused(codes.FailedPrecondition, c.Operation, name, "the profile keeps sessions in Redis, and this broker has no settings for Redis")
	case errors.Is(err, session.ErrNoMemory):
		return requests.Refused(codes.ResourceExhausted, c.Operation, name, "Redis has no memory left for sessions; try again when some have ended")
	case errors.Is(err, session.ErrUnavailable):
		return requests.Refused(codes.Unavailable, c.Operation, name, "the sessions in Redis are not available; the log of the broker says why")
	case c.Context.Err() != nil || errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	default:
		return h.internal(c, name, "a session failed", err)
	}
}
