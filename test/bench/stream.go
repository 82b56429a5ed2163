// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	streamv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/stream/v1"
)

// maxCallers is the maximum number of callers that a stream has.
const maxCallers = 64

// stream uses Exchange in the simplest way with the generated stubs: a message for each
// call, and one goroutine that hands out the replies.
type stream struct {
	cancel context.CancelFunc
	// replies has a place for the reply to each caller. The caller's number is the id of
	// its calls.
	replies [maxCallers]chan *streamv1.Reply
	// ended is closed at the end, with the reason in err.
	ended chan struct{}
	err   error

	mu     sync.Mutex // for sending
	stream streamv1.StreamService_ExchangeClient
}

func newStream(conn *grpc.ClientConn) (*stream, error) {
	ctx, cancel := context.WithCancel(context.Background())
	opened, err := streamv1.NewStreamServiceClient(conn).Exchange(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	s := &stream{cancel: cancel, ended: make(chan struct{}), stream: opened}
	for i := range s.replies {
		s.replies[i] = make(chan *streamv1.Reply, 1)
	}
	go s.read()
	return s, nil
}

func (s *stream) read() {
	defer close(s.ended)
	for {
		message, err := s.stream.Recv()
		if err != nil {
			s.err = err
			return
		}
		for _, reply := range message.GetReplies() {
			if reply.GetId() >= maxCallers {
				s.err = fmt.Errorf("a reply has the id %d, which no call had", reply.GetId())
				return
			}
			s.replies[reply.GetId()] <- reply
		}
	}
}

// call makes calls of a load.
func (s *stream) call(l *load) call {
	return func(ctx context.Context, caller int) error {
		request := &streamv1.Call{Id: uint64(caller)}
		switch {
		case l.hash != nil:
			request.Request = &streamv1.Call_HashData{HashData: l.hash}
		case l.certificate != nil:
			request.Request = &streamv1.Call_SignCertificate{SignCertificate: l.certificate}
		default:
			request.Request = &streamv1.Call_EncryptData{EncryptData: l.encrypt}
		}
		s.mu.Lock()
		err := s.stream.Send(&streamv1.ExchangeRequest{Calls: []*streamv1.Call{request}})
		s.mu.Unlock()
		if err != nil && !errors.Is(err, io.EOF) { // after EOF, Recv returns the reason
			return err
		}
		select {
		case reply := <-s.replies[caller]:
			return l.checkReply(reply)
		case <-s.ended:
			return fmt.Errorf("the stream has ended: %w", s.err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *load) checkReply(reply *streamv1.Reply) error {
	if refused := reply.GetStatus(); refused != nil {
		return status.Error(codes.Code(refused.GetCode()), refused.GetMessage())
	}
	switch {
	case l.hash != nil:
		return l.checkHash(reply.GetHashData())
	case l.certificate != nil:
		return checkLength("a certificate", len(reply.GetSignCertificate().GetDer()), 200)
	default:
		return checkLength("a ciphertext", len(reply.GetEncryptData().GetCiphertext()), len(l.encrypt.GetPlaintext()))
	}
}

// close ends the stream in order.
func (s *stream) close() error {
	defer s.cancel()
	s.mu.Lock()
	err := s.stream.CloseSend()
	s.mu.Unlock()
	if <-s.ended; !errors.Is(s.err, io.EOF) {
		err = errors.Join(err, s.err)
	}
	return err
}
