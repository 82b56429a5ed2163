// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const exchangeMethod = "/cryptobroker.stream.v1.StreamService/Exchange"

// raw are the bytes of a message, which its codec passes on as they are.
type raw []byte

type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(message any) ([]byte, error) { return *message.(*raw), nil }

func (rawCodec) Unmarshal(data []byte, message any) error {
	*message.(*raw) = append(raw(nil), data...)
	return nil
}

// proxy passes calls to a broker. It counts the streams of Exchange, and can refuse them as older brokers do.
type proxy struct {
	socket    string
	broker    *grpc.ClientConn
	server    *grpc.Server
	without   atomic.Bool
	exchanged atomic.Int64
}

// startProxy starts a proxy for a broker until the test ends.
func startProxy(t *testing.T, b *broker) *proxy {
	t.Helper()
	dir, err := os.MkdirTemp("", "contract") // a path that is short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("unix:"+b.socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{socket: filepath.Join(dir, "s"), broker: conn}
	p.start(t)
	t.Cleanup(func() {
		p.server.Stop()
		if err := errors.Join(conn.Close(), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return p
}

// start listens at the socket.
func (p *proxy) start(t *testing.T) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(p.pass), grpc.MaxRecvMsgSize(maxAnswer))
	p.server = server
	go func() { _ = server.Serve(listener) }() // until it is stopped
}

// replace ends all connections and listens again, as if the broker was replaced by another version.
func (p *proxy) replace(t *testing.T, without bool) {
	t.Helper()
	p.server.Stop()
	p.without.Store(without)
	p.exchanged.Store(0)
	p.start(t)
}

// pass passes a call to the broker, and its replies back.
func (p *proxy) pass(_ any, client grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(client)
	if method == exchangeMethod {
		p.exchanged.Add(1)
		if p.without.Load() {
			return status.Error(codes.Unimplemented, "unknown method Exchange for service cryptobroker.stream.v1.StreamService")
		}
	}
	ctx, cancel := context.WithCancel(client.Context())
	defer cancel()
	broker, err := p.broker.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	go func() {
		for {
			var message raw
			if err := client.RecvMsg(&message); err != nil {
				_ = broker.CloseSend() // it never fails
				return
			}
			if err := broker.SendMsg(&message); err != nil {
				return // RecvMsg has the reason
			}
		}
	}()
	for {
		var message raw
		if err := broker.RecvMsg(&message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := client.SendMsg(&message); err != nil {
			return err
		}
	}
}

// askedAgain is more than the number of times that a client asks a broker without Exchange for it: a client asks once for each
// connection, or once a minute.
const askedAgain = 5

func TestEveryClientUsesExchangeWhereTheBrokerHasIt(t *testing.T) {
	cases, err := readCases("cases")
	if err != nil {
		t.Fatal(err)
	}
	broker := startBroker(t, own)
	for name, start := range drivers(t) {
		if !strings.HasPrefix(name, "client ") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			p := startProxy(t, broker)
			d := open(t, p.socket, start)
			runAll := func(when string) {
				t.Helper()
				for _, c := range cases {
					if c.WireOnly {
						continue
					}
					if _, err := c.run(broker.values, func(int) driver { return d }); err != nil {
						t.Errorf("%s, %s: %v", c.Name, when, err)
					}
				}
			}
			runAll("with a broker that has Exchange")
			if strings.HasSuffix(name, withoutExchange) {
				if n := p.exchanged.Load(); n != 0 {
					t.Errorf("the client began %d streams of Exchange, expected none", n)
				}
				return
			}
			if p.exchanged.Load() == 0 {
				t.Error("the client began no stream of Exchange")
			}
			p.replace(t, true)
			runAll("with a broker without Exchange")
			if n := p.exchanged.Load(); n == 0 || n > askedAgain {
				t.Errorf("the client began %d streams of Exchange with a broker that has none, expected 1 to %d", n, askedAgain)
			}
		})
	}
}
