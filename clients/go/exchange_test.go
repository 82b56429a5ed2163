// SPDX-License-Identifier: Apache-2.0

package cryptobroker_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	cryptobroker "github.com/crypto-broker/crypto-broker-operator/clients/go"
	streamv1 "github.com/crypto-broker/crypto-broker-operator/clients/go/internal/stubs/cryptobroker/stream/v1"
	cryptobrokerv1 "github.com/crypto-broker/crypto-broker-operator/clients/go/internal/stubs/cryptobroker/v1"
)

type exchangeStream = grpc.BidiStreamingServer[streamv1.ExchangeRequest, streamv1.ExchangeResponse]

// hash makes a call; the digest says how it was served.
func hash(t testing.TB, client *cryptobroker.Client) string {
	t.Helper()
	got, err := client.HashData(withTimeout(t), cryptobroker.HashDataRequest{Profile: "P", Input: []byte("abc")})
	if err != nil {
		t.Fatal(err)
	}
	return string(got.Digest)
}

func TestABrokerWithoutTheStreamIsAskedForItOnceAConnection(t *testing.T) {
	old, current := &faulty{}, &faulty{exchange: answer}
	socket, stop := serve(t, old)
	client := newClient(t, socket)
	for range 5 {
		if got := hash(t, client); got != "unary" {
			t.Fatalf("served by %s, want a call of gRPC", got)
		}
	}
	if calls, streams := old.seen(); calls != 5 || streams != 1 {
		t.Errorf("%d calls and %d streams, want 5 and 1", calls, streams)
	}
	// The next broker also has the stream. The first call detects the new broker.
	stop()
	serveAt(t, current, socket)
	hash(t, client)
	if got := hash(t, client); got != "stream" {
		t.Errorf("served by %s, want the stream", got)
	}
}

func TestCallsThatTheStreamDoesNotAnswerAreMadeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		first func(exchangeStream) error
		want  string
	}{
		"since it breaks":            {func(exchangeStream) error { return status.Error(codes.Unavailable, "gone") }, "stream"},
		"since it ends":              {func(exchangeStream) error { return nil }, "stream"},
		"since the broker is done":   {sendGoAway, "stream"},
		"since the broker is broken": {func(exchangeStream) error { return status.Error(codes.Internal, "a defect") }, "unary"},
		"since it is no reply":       {sendWrongReply, "unary"},
		"since it lacks the operation": {func(s exchangeStream) error {
			return refuse(s, &streamv1.Status{Code: int32(codes.Unimplemented), Message: "Exchange: none of the requests"})
		}, "unary"},
		"since the broker is busy": {func(s exchangeStream) error {
			return refuse(s, &streamv1.Status{Code: int32(codes.ResourceExhausted), Message: "busy"})
		}, "stream"},
	} {
		t.Run(name, func(t *testing.T) {
			var once sync.Once
			f := &faulty{}
			f.exchange = func(s exchangeStream) error {
				first := false
				once.Do(func() { first = true })
				if !first {
					return answer(s)
				}
				if _, err := s.Recv(); err != nil {
					return err
				}
				return c.first(s)
			}
			socket, _ := serve(t, f)
			if got := hash(t, newClient(t, socket)); got != c.want {
				t.Errorf("served by %s, want %s", got, c.want)
			}
		})
	}
}

func sendGoAway(s exchangeStream) error {
	if err := s.Send(&streamv1.ExchangeResponse{GoAway: &streamv1.GoAway{Message: "bye"}}); err != nil {
		return err
	}
	<-s.Context().Done() // it takes a while to end
	return nil
}

func sendWrongReply(s exchangeStream) error {
	reply := &streamv1.Reply{Id: 1, Result: &streamv1.Reply_VerifyData{VerifyData: &cryptobrokerv1.VerifyDataResponse{Valid: true}}}
	if err := s.Send(&streamv1.ExchangeResponse{Replies: []*streamv1.Reply{reply}}); err != nil {
		return err
	}
	<-s.Context().Done()
	return nil
}

// refuse refuses the first call and answers the others.
func refuse(s exchangeStream, why *streamv1.Status) error {
	reply := &streamv1.Reply{Id: 1, Result: &streamv1.Reply_Status{Status: why}}
	if err := s.Send(&streamv1.ExchangeResponse{Replies: []*streamv1.Reply{reply}}); err != nil {
		return err
	}
	return answer(s)
}

func TestRepliesInAnyOrderReachTheirCallers(t *testing.T) {
	const callers = 50
	f := &faulty{exchange: func(s exchangeStream) error {
		var calls []*streamv1.Call
		for len(calls) < callers {
			request, err := s.Recv()
			if err != nil {
				return err
			}
			calls = append(calls, request.GetCalls()...)
		}
		var replies []*streamv1.Reply
		for i := len(calls) - 1; i >= 0; i-- {
			replies = append(replies, replied(calls[i].GetId(), string(calls[i].GetHashData().GetInput())))
		}
		if err := s.Send(&streamv1.ExchangeResponse{Replies: replies}); err != nil {
			return err
		}
		return answer(s)
	}}
	socket, _ := serve(t, f)
	client := newClient(t, socket)
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			input := []byte{byte(i)}
			got, err := client.HashData(withTimeout(t), cryptobroker.HashDataRequest{Profile: "P", Input: input})
			if err != nil || string(got.Digest) != string(input) {
				t.Errorf("caller %d got %v, %v", i, got, err)
			}
		})
	}
	group.Wait()
}

func TestACallEndsWithItsContextThoughTheBrokerIsSilent(t *testing.T) {
	silent := make(chan struct{})
	f := &faulty{
		exchange: func(s exchangeStream) error {
			for {
				if _, err := s.Recv(); err != nil {
					return err
				}
			}
		},
		hash: func(*cryptobrokerv1.HashDataRequest) (*cryptobrokerv1.HashDataResponse, error) {
			<-silent
			return hashed("late"), nil
		},
	}
	socket, _ := serve(t, f)
	defer close(silent)
	for name, options := range map[string][]cryptobroker.Option{
		"over the stream": nil, "as calls of gRPC": {cryptobroker.WithoutExchange()},
	} {
		t.Run(name, func(t *testing.T) {
			client := newClient(t, socket, options...)
			request := cryptobroker.HashDataRequest{Profile: "P"}
			brief, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			var failure *cryptobroker.Error
			_, err := client.HashData(brief, request)
			if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &failure) || failure.Code != cryptobroker.CodeDeadlineExceeded {
				t.Errorf("after the deadline: %v", err)
			}
			canceled, cancel := context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, cancel)
			_, err = client.HashData(canceled, request)
			if !errors.Is(err, context.Canceled) || !errors.As(err, &failure) || failure.Code != cryptobroker.CodeCanceled {
				t.Errorf("canceled: %v", err)
			}
			timed := newClient(t, socket, append(options, cryptobroker.WithTimeout(50*time.Millisecond))...)
			if _, err := timed.HashData(t.Context(), request); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("after the timeout: %v", err)
			}
		})
	}
}

func TestTheBrokerIsToldOfACallThatWasGivenUp(t *testing.T) {
	called, givenUp := make(chan uint64, 1), make(chan []uint64, 1)
	f := &faulty{exchange: func(s exchangeStream) error {
		for {
			request, err := s.Recv()
			if err != nil {
				return err
			}
			for _, call := range request.GetCalls() {
				called <- call.GetId()
			}
			if ids := request.GetGivenUp(); len(ids) > 0 {
				givenUp <- ids
				for _, id := range ids {
					canceled := &streamv1.Reply{Id: id, Result: &streamv1.Reply_Status{Status: &streamv1.Status{Code: int32(codes.Canceled), Message: "given up"}}}
					if err := s.Send(&streamv1.ExchangeResponse{Replies: []*streamv1.Reply{canceled}}); err != nil {
						return err
					}
				}
				return answer(s)
			}
		}
	}}
	socket, _ := serve(t, f)
	client := newClient(t, socket)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := client.HashData(ctx, cryptobroker.HashDataRequest{Profile: "P"})
		done <- err
	}()
	id := <-called
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if got := <-givenUp; len(got) != 1 || got[0] != id {
		t.Errorf("the broker was told of %d, want %d", got, id)
	}
	hash(t, client) // the stream goes on
}

func TestTheDeadlineOfACallIsToldToTheBroker(t *testing.T) {
	timeouts := make(chan uint32, 1)
	f := &faulty{exchange: func(s exchangeStream) error {
		request, err := s.Recv()
		if err != nil {
			return err
		}
		timeouts <- request.GetCalls()[0].GetTimeoutMillis()
		if err := s.Send(&streamv1.ExchangeResponse{Replies: []*streamv1.Reply{replied(request.GetCalls()[0].GetId(), "stream")}}); err != nil {
			return err
		}
		return answer(s)
	}}
	socket, _ := serve(t, f)
	hash(t, newClient(t, socket))
	if got := time.Duration(<-timeouts) * time.Millisecond; got < waitLimit/2 || got > waitLimit {
		t.Errorf("the broker was told %s, want nearly %s", got, waitLimit)
	}
}

func TestCallsBeyondTheLimitWaitForTheirTurn(t *testing.T) {
	const limit, callers = 1024, 1100
	all := make(chan struct{})
	f := &faulty{exchange: func(s exchangeStream) error {
		var calls []*streamv1.Call
		for len(calls) < limit {
			request, err := s.Recv()
			if err != nil {
				return err
			}
			calls = append(calls, request.GetCalls()...)
		}
		if len(calls) > limit {
			return status.Errorf(codes.FailedPrecondition, "%d calls at one time", len(calls))
		}
		<-all
		for _, call := range calls {
			if err := s.Send(&streamv1.ExchangeResponse{Replies: []*streamv1.Reply{replied(call.GetId(), "stream")}}); err != nil {
				return err
			}
		}
		return answer(s)
	}}
	socket, _ := serve(t, f)
	client := newClient(t, socket)
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			got, err := client.HashData(withTimeout(t), cryptobroker.HashDataRequest{Profile: "P", Input: []byte("abc")})
			if err != nil || string(got.Digest) != "stream" {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	close(all)
	group.Wait()
}

func TestCallsThatWereGivenUpKeepTheirPlaceUntilTheBrokerIsDoneWithThem(t *testing.T) {
	const limit, callers = 1024, 1200
	arrived, goOn := make(chan int, callers), make(chan struct{})
	f := &faulty{exchange: func(s exchangeStream) error {
		ids := []uint64{}
		for len(ids) < limit {
			request, err := s.Recv()
			if err != nil {
				return err
			}
			for _, call := range request.GetCalls() {
				ids = append(ids, call.GetId())
			}
			arrived <- len(ids)
		}
		<-goOn
		for _, id := range ids {
			if err := s.Send(&streamv1.ExchangeResponse{Replies: []*streamv1.Reply{replied(id, "late")}}); err != nil {
				return err
			}
		}
		return answer(s)
	}}
	socket, _ := serve(t, f)
	client := newClient(t, socket)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			if _, err := client.HashData(ctx, cryptobroker.HashDataRequest{Profile: "P"}); !errors.Is(err, context.Canceled) {
				t.Errorf("given up: %v", err)
			}
		})
	}
	for n := 0; n < limit; {
		if n = <-arrived; n > limit {
			t.Errorf("%d calls under way, want at most %d", n, limit)
		}
	}
	cancel()
	group.Wait()
	brief, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := client.HashData(brief, cryptobroker.HashDataRequest{Profile: "P"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while the broker has them all: %v, want %v", err, context.DeadlineExceeded)
	}
	close(goOn)
	if got := hash(t, client); got != "stream" {
		t.Errorf("after that: served by %s, want the stream", got)
	}
}
