// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
)

// fault is a fault of a connection that happens after the server has sent a number of bytes.
type fault func(client *net.TCPConn)

var faults = map[string]fault{
	"it is closed": func(client *net.TCPConn) { _ = client.Close() },
	"it is reset": func(client *net.TCPConn) {
		_ = client.SetLinger(0)
		_ = client.Close()
	},
	"nothing comes": func(*net.TCPConn) {},
	"garbage comes": func(client *net.TCPConn) {
		garbage := make([]byte, 32<<10)
		_, _ = rand.Read(garbage)
		_, _ = client.Write(garbage)
	},
}

// faultyPath forwards connections to a server. After a number of bytes from the server it makes a fault. It counts the bytes.
type faultyPath struct {
	address string
	at      int64 // 0 for no fault
	happens fault
	piece   int // the most bytes that are forwarded at once
	count   atomic.Int64
}

func (f *faultyPath) serve(t *testing.T, server string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.address = listener.Addr().String()
	serveOn(t, listener, func(client net.Conn) {
		to, err := net.Dial("tcp", server)
		if err != nil {
			return
		}
		defer func() { _ = to.Close() }()
		forwarded := make(chan struct{})
		go func() {
			defer close(forwarded)
			var from io.Reader = to
			if f.at > 0 {
				from = io.LimitReader(to, f.at)
			}
			buffer := make([]byte, f.piece)
			for {
				n, err := from.Read(buffer)
				f.count.Add(int64(n))
				if _, failed := client.Write(buffer[:n]); failed != nil || errors.Is(err, io.EOF) && f.at == 0 {
					_ = client.Close()
					return
				}
				if errors.Is(err, io.EOF) {
					f.happens(client.(*net.TCPConn))
					return
				}
				if err != nil {
					return
				}
			}
		}()
		_, _ = io.Copy(to, client)
		_ = to.Close()
		<-forwarded
	})
}

// exchangeOver asks a server once over a new connection to the address, and returns an error if the answer is missing or wrong.
type exchangeOver func(ctx context.Context, t *testing.T, p provider, address string) error

var answer = strings.Repeat("hello ", 500)

func getOver(transport func(provider) *http.Transport) exchangeOver {
	return func(ctx context.Context, _ *testing.T, p provider, address string) error {
		transport := transport(p)
		defer transport.CloseIdleConnections()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address, nil)
		if err != nil {
			return err
		}
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err == nil && string(body) != answer {
			err = fmt.Errorf("%w: %q", errWrongAnswer, body)
		}
		return err
	}
}

var errWrongAnswer = errors.New("the answer is wrong")

func callOver(ctx context.Context, t *testing.T, p provider, address string) error {
	body := []byte(answer)
	client, closeConn := connectGRPC(t, p, address)
	defer closeConn()
	reply, err := client.UnaryCall(ctx, &testpb.SimpleRequest{Payload: &testpb.Payload{Body: body}})
	if err == nil && !bytes.Equal(reply.Payload.GetBody(), body) {
		err = errWrongAnswer
	}
	return err
}

// The servers, and how the test calls them.
func exchanges(t *testing.T, authority *authority) map[string]struct {
	server string
	ask    exchangeOver
} {
	web := serveHTTP(t, authority.serverConfig(t), func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })
	return map[string]struct {
		server string
		ask    exchangeOver
	}{
		"HTTP/1.1": {web.Listener.Addr().String(), getOver(func(p provider) *http.Transport { return p.http1() })},
		"HTTP/2":   {web.Listener.Addr().String(), getOver(func(p provider) *http.Transport { return p.http2() })},
		"gRPC":     {serveGRPC(t, authority), callOver},
	}
}

func TestAnExchangeWithAFaultAtAnyByteEndsWithAnErrorOrTheAnswer(t *testing.T) {
	authority := newAuthority(t)
	for protocol, exchange := range exchanges(t, authority) {
		t.Run(protocol, func(t *testing.T) {
			withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				whole := faultyPath{piece: 32 << 10}
				whole.serve(t, exchange.server)
				if err := exchange.ask(ctx, t, p, whole.address); err != nil {
					t.Fatal(err)
				}
				all := places(int(whole.count.Load()))
				for name, happens := range faults {
					t.Run(name, func(t *testing.T) {
						// Most exchanges that wait for more data take the whole timeout, so they run in parallel.
						limit, atOnce := patience, 1
						if name == "nothing comes" {
							limit, atOnce = 500*time.Millisecond, 200
						}
						var failures atomic.Int64
						var working sync.WaitGroup
						slots := make(chan struct{}, atOnce)
						for _, at := range all {
							slots <- struct{}{}
							working.Go(func() {
								defer func() { <-slots }()
								path := faultyPath{at: int64(at) + 1, happens: happens, piece: 32 << 10}
								path.serve(t, exchange.server)
								ctx, cancel := context.WithTimeout(t.Context(), limit)
								defer cancel()
								err := exchange.ask(ctx, t, p, path.address)
								if err != nil {
									failures.Add(1)
								}
								if unexpected := expectFault(ctx, protocol, err, limit); unexpected != nil {
									t.Errorf("after %d bytes: %v", at+1, unexpected)
								}
							})
						}
						working.Wait()
						// Most exchanges fail: only a fault in the last bytes comes after the answer.
						if failed := int(failures.Load()); failed < len(all)/2 {
							t.Errorf("%d of %d exchanges failed", failed, len(all))
						}
					})
				}
			})
		})
	}
}

// expectFault returns an error if an exchange ended in a way that is never allowed.
func expectFault(ctx context.Context, protocol string, err error, limit time.Duration) error {
	switch code := status.Code(err); {
	case errors.Is(err, errWrongAnswer), ctx.Err() != nil && limit == patience:
		return err
	case protocol == "gRPC" && code != codes.OK && code != codes.Unavailable && code != codes.DeadlineExceeded:
		return err
	}
	return nil
}

func TestAnExchangeWhoseBytesComeOneByOneSucceeds(t *testing.T) {
	authority := newAuthority(t)
	for protocol, exchange := range exchanges(t, authority) {
		t.Run(protocol, func(t *testing.T) {
			withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				path := faultyPath{piece: 1}
				path.serve(t, exchange.server)
				if err := exchange.ask(ctx, t, p, path.address); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
