// SPDX-License-Identifier: Apache-2.0

package sessionbench

import (
	"context"
	"time"

	"google.golang.org/grpc"

	sessionv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/session/v1"
)

// Socket is the socket of a broker. It is called as by an application that terminates HTTP
// itself.
type Socket struct {
	// Profile is the name of the profile.
	Profile string
	// Dial makes a connection, and Failed returns a sentence about why a call failed.
	Dial   func() (*grpc.ClientConn, error)
	Failed func(error) error
	// Timeout is how long a call may take.
	Timeout time.Duration
}

func (s *Socket) phases() (toBegin, toSend []string) {
	return []string{"InitSession"}, []string{"OpenRequest", "SealReply"}
}

func (s *Socket) connect(context.Context) (server, error) {
	conn, err := s.Dial()
	if err != nil {
		return nil, err
	}
	return &socketServer{s, conn, sessionv1.NewSessionServiceClient(conn)}, nil
}

// socketServer is one connection.
type socketServer struct {
	*Socket
	conn   *grpc.ClientConn
	broker sessionv1.SessionServiceClient
}

func (s *socketServer) begin(ctx context.Context, r *initRequest, t *stopwatch) (*initReply, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	begun, err := s.broker.InitSession(ctx, &sessionv1.InitSessionRequest{
		Profile: s.Profile, KeyAgreement: keyAgreement, ClientPublicKey: r.clientPublicKey, TtlSec: askedLifetime,
		Nonce: r.nonce, Timestamp: r.timestamp, ClientId: r.clientID,
	})
	if err != nil {
		return nil, s.Failed(err)
	}
	t.lap(1)
	return &initReply{begun.GetSessionId(), begun.GetServerPublicKey()}, nil
}

func (s *socketServer) send(ctx context.Context, m *message, t *stopwatch) (*message, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	opened, err := s.broker.OpenRequest(ctx, &sessionv1.OpenRequestRequest{
		Profile: s.Profile, Method: method, Path: m.path, Kid: m.kid, EncAlg: m.encAlg, Iv: m.iv, Tag: m.tag, Aad: m.aad,
		Nonce: m.nonce, Timestamp: m.timestamp, IdempotencyKey: m.idempotencyKey, ClientId: m.clientID, Body: m.body,
	})
	if err != nil {
		return nil, s.Failed(err)
	}
	t.lap(1)
	reply, err := s.broker.SealReply(ctx, &sessionv1.SealReplyRequest{
		Profile: s.Profile, SessionId: opened.GetSessionId(), ClientPath: opened.GetClientPath(), Plaintext: opened.GetPlaintext(),
	})
	if err != nil {
		return nil, s.Failed(err)
	}
	t.lap(2)
	return &message{
		kid: reply.GetKid(), encAlg: reply.GetEncAlg(), iv: reply.GetIv(), tag: reply.GetTag(), aad: reply.GetAad(), nonce: reply.GetNonce(),
		timestamp: reply.GetTimestamp(), idempotencyKey: reply.GetIdempotencyKey(), clientID: reply.GetClientId(), body: reply.GetBody(),
	}, nil
}

func (s *socketServer) end(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	_, err := s.broker.CloseSession(ctx, &sessionv1.CloseSessionRequest{Profile: s.Profile, SessionId: id})
	return s.Failed(err)
}

func (s *socketServer) close() { _ = s.conn.Close() } // all replies have arrived
