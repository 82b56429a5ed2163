// SPDX-License-Identifier: Apache-2.0

// Package wiresession serves the methods of cryptobroker.session.v1: it turns messages into arguments of
// the handlers, and back.
package wiresession

import (
	"time"

	"google.golang.org/grpc"

	sessionv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/session/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/rpc"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/wirev1"
	"github.com/crypto-broker/crypto-broker-operator/broker/session"
)

// adapter turns the messages of the service into arguments of the handlers.
type adapter struct{ *rpc.Service }

// NewService returns the service cryptobroker.session.v1.SessionService.
func NewService(s *rpc.Service) *grpc.ServiceDesc {
	a := adapter{s}
	return &grpc.ServiceDesc{
		ServiceName: sessionv1.SessionService_ServiceDesc.ServiceName,
		Metadata:    sessionv1.SessionService_ServiceDesc.Metadata,
		Methods: []grpc.MethodDesc{
			rpc.Unary(s, profile.OpInitSession.String(), profile.OpInitSession, a.initSession),
			rpc.Unary(s, profile.OpOpenRequest.String(), profile.OpOpenRequest, a.openRequest),
			rpc.Unary(s, profile.OpSealReply.String(), profile.OpSealReply, a.sealReply),
			rpc.Unary(s, profile.OpCloseSession.String(), profile.OpCloseSession, a.closeSession),
			rpc.Unary(s, profile.OpRekeySession.String(), profile.OpRekeySession, a.rekeySession),
		},
	}
}

func (a adapter) initSession(c *handlers.Call, request *sessionv1.InitSessionRequest) (*sessionv1.InitSessionResponse, error) {
	begun, err := a.InitSession(c, request.GetProfile(), session.Init{
		KeyAgreement: request.GetKeyAgreement(), ClientPublicKey: request.GetClientPublicKey(),
		TTL:   time.Duration(request.GetTtlSec()) * time.Second,
		Nonce: request.GetNonce(), Timestamp: request.GetTimestamp(), ClientID: request.GetClientId(),
	})
	if err != nil {
		return nil, err
	}
	return &sessionv1.InitSessionResponse{
		SessionId: begun.ID, ServerPublicKey: begun.ServerPublicKey, EncAlg: begun.EncAlg,
		ExpiresInSec: uint32(begun.Lifetime / time.Second), Descriptor_: wirev1.Descriptor(c, request.GetProfile(), begun.Protocol.String()),
		Signature: begun.Signature, SignatureAlgorithm: begun.SignatureAlgorithm,
	}, nil
}

func (a adapter) openRequest(c *handlers.Call, request *sessionv1.OpenRequestRequest) (*sessionv1.OpenRequestResponse, error) {
	opened, err := a.OpenRequest(c, request.GetProfile(), &session.Request{
		Method: request.GetMethod(), Path: request.GetPath(), Kid: request.GetKid(), EncAlg: request.GetEncAlg(),
		IV: request.GetIv(), Tag: request.GetTag(), AAD: request.GetAad(), Nonce: request.GetNonce(), Timestamp: request.GetTimestamp(),
		IdempotencyKey: request.GetIdempotencyKey(), ClientID: request.GetClientId(), Body: request.GetBody(),
		Sequence: request.GetSequence(),
	})
	if err != nil {
		return nil, err
	}
	return &sessionv1.OpenRequestResponse{
		Plaintext: opened.Plaintext, SessionId: opened.ID, Path: opened.Path, ClientPath: opened.ClientPath,
		ClientId: opened.ClientID, Sequence: opened.Sequence, Descriptor_: wirev1.Descriptor(c, request.GetProfile(), opened.Protocol.String()),
	}, nil
}

func (a adapter) sealReply(c *handlers.Call, request *sessionv1.SealReplyRequest) (*sessionv1.SealReplyResponse, error) {
	reply, err := a.SealReply(c, request.GetProfile(), request.GetSessionId(), request.GetClientPath(), request.GetSequence(), request.GetPlaintext())
	if err != nil {
		return nil, err
	}
	return &sessionv1.SealReplyResponse{
		Kid: reply.Kid, EncAlg: reply.EncAlg, Iv: reply.IV, Tag: reply.Tag, Aad: reply.AAD, Nonce: reply.Nonce, Timestamp: reply.Timestamp,
		IdempotencyKey: reply.IdempotencyKey, ClientId: reply.ClientID, Sequence: reply.Sequence, Body: reply.Body,
		Descriptor_: wirev1.Descriptor(c, request.GetProfile(), reply.Protocol.String()),
	}, nil
}

func (a adapter) closeSession(c *handlers.Call, request *sessionv1.CloseSessionRequest) (*sessionv1.CloseSessionResponse, error) {
	if err := a.CloseSession(c, request.GetProfile(), request.GetSessionId()); err != nil {
		return nil, err
	}
	return &sessionv1.CloseSessionResponse{}, nil
}

func (a adapter) rekeySession(c *handlers.Call, request *sessionv1.RekeySessionRequest) (*sessionv1.RekeySessionResponse, error) {
	opened, err := a.RekeySession(c, request.GetProfile(), &session.Request{
		Method: request.GetMethod(), Path: request.GetPath(), Kid: request.GetKid(), EncAlg: request.GetEncAlg(),
		Timestamp: request.GetTimestamp(), Sequence: request.GetSequence(), Body: request.GetBody(),
	})
	if err != nil {
		return nil, err
	}
	return &sessionv1.RekeySessionResponse{
		SessionId: opened.ID, Path: opened.Path, ClientPath: opened.ClientPath, Sequence: opened.Sequence,
		Descriptor_: wirev1.Descriptor(c, request.GetProfile(), opened.Protocol.String()),
	}, nil
}
