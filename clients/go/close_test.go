// SPDX-License-Identifier: Apache-2.0

package cryptobroker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	cryptobroker "github.com/crypto-broker/crypto-broker-operator/clients/go"
	streamv1 "github.com/crypto-broker/crypto-broker-operator/clients/go/internal/stubs/cryptobroker/stream/v1"
)

// holdingBack is a faulty broker that holds back the first call of a stream until the test lets it continue.
func holdingBack(arrived, goOn chan struct{}) *faulty {
	return &faulty{exchange: func(s exchangeStream) error {
		request, err := s.Recv()
		if err != nil {
			return err
		}
		close(arrived)
		select {
		case <-goOn:
		case <-s.Context().Done():
			return nil
		}
		if err := s.Send(&streamv1.ExchangeResponse{Replies: []*streamv1.Reply{replied(request.GetCalls()[0].GetId(), "stream")}}); err != nil {
			return err
		}
		return answer(s)
	}}
}

func TestCloseWaitsForCallsAndLetsNoMoreIn(t *testing.T) {
	arrived, goOn := make(chan struct{}), make(chan struct{})
	socket, _ := serve(t, holdingBack(arrived, goOn))
	client := newClient(t, socket)
	request := cryptobroker.HashDataRequest{Profile: "P"}
	result := make(chan error, 1)
	go func() {
		_, err := client.HashData(withTimeout(t), request)
		result <- err
	}()
	<-arrived
	closed := make(chan error, 1)
	go func() { closed <- client.Close(withTimeout(t)) }()
	var err error
	for deadline := time.Now().Add(waitLimit); !errors.Is(err, cryptobroker.ErrClosed); {
		brief, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if _, err = client.HashData(brief, request); time.Now().After(deadline) {
			t.Fatalf("calls are let in: %v", err)
		}
		cancel()
	}
	for name, call := range map[string]func() error{
		"HashReader": func() error { _, err := client.HashReader(withTimeout(t), "P", zeros{}); return err },
		"Health":     func() error { _, err := client.Health(withTimeout(t)); return err },
	} {
		if err := call(); !errors.Is(err, cryptobroker.ErrClosed) {
			t.Errorf("%s: %v, want %v", name, err, cryptobroker.ErrClosed)
		}
	}
	select {
	case err := <-closed:
		t.Fatalf("closed with a call under way: %v", err)
	default:
	}
	close(goOn)
	if err := <-result; err != nil {
		t.Errorf("the call under way: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestCloseEndsTheCallsThatAreLeft(t *testing.T) {
	for name, socket := range map[string]func() string{
		"one that the broker has": func() string {
			socket, _ := serve(t, holdingBack(make(chan struct{}), nil))
			return socket
		},
		"one that waits for a broker": func() string { return socketDir(t) + "/none" },
	} {
		t.Run(name, func(t *testing.T) {
			begun := make(chan struct{})
			client := newClient(t, socket(), cryptobroker.WithTraceContext(func(context.Context) cryptobroker.TraceContext {
				close(begun)
				return cryptobroker.TraceContext{}
			}))
			result := make(chan error, 1)
			go func() {
				_, err := client.HashData(withTimeout(t), cryptobroker.HashDataRequest{Profile: "P"})
				result <- err
			}()
			<-begun
			brief, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := client.Close(brief); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("close: %v, want %v", err, context.DeadlineExceeded)
			}
			if err := <-result; !errors.Is(err, cryptobroker.ErrClosed) {
				t.Errorf("the call: %v, want %v", err, cryptobroker.ErrClosed)
			}
		})
	}
}

func TestOptionsThatMakeNoSenseAreErrors(t *testing.T) {
	for name, c := range map[string]struct {
		option cryptobroker.Option
		want   string
	}{
		"no socket":       {cryptobroker.WithSocket(""), "crypto broker: the path of the socket is empty"},
		"negative budget": {cryptobroker.WithRetryBudget(-time.Second), "crypto broker: the retry budget is -1s, expected none or a positive one"},
		"negative time":   {cryptobroker.WithTimeout(-time.Second), "crypto broker: the timeout is -1s, expected none or a positive one"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := cryptobroker.New(c.option); err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
