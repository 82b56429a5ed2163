// SPDX-License-Identifier: Apache-2.0

package sessiongateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/connlimit"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/callers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/rpc"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
	"github.com/crypto-broker/crypto-broker-operator/broker/session"
)

// Options are the settings of a gateway.
type Options struct {
	// Name is the name of the gateway as a caller.
	Name string
	// Profile is the name of the profile of all sessions.
	Profile string
	// AppPort is the TCP port of the application on 127.0.0.1.
	AppPort uint16
	// Plain are the paths of requests that need no encryption, in normal form.
	Plain []string
}

// Validate returns what is wrong with the paths for plain requests.
func (o *Options) Validate() error {
	for _, path := range o.Plain {
		switch normal, ok := session.NormalPath(path); {
		case !ok:
			return fmt.Errorf("found the path %.100q, expected an absolute path without a query, empty segments and escaped slashes", path)
		case normal != path:
			return fmt.Errorf("found the path %.100q, expected its normal form %.100q", path, normal)
		case path == initPath || path == healthPath:
			return fmt.Errorf("found the path %q, which the gateway serves itself", path)
		}
	}
	return nil
}

// Times of a connection and of a request. A client that takes longer loses its connection.
type times struct {
	// header is for the headers of a request, and read for the whole request.
	header, read time.Duration
	// write is for reading a reply, and idle for the next request.
	write, idle time.Duration
	// memory is how long a request waits for memory.
	memory time.Duration
	// app is for the whole answer of the application.
	app time.Duration
}

var defaultTimes = times{header: 10 * time.Second, read: 30 * time.Second, write: 30 * time.Second, idle: time.Minute, memory: 10 * time.Second, app: time.Minute}

const (
	// maxHeader bounds the headers of a request in bytes. For HTTP/1.1, net/http allows 4 KiB more.
	maxHeader = 16 << 10
	// maxStreams is the maximum number of requests that a connection of HTTP/2 may have at one
	// time.
	maxStreams = 100
	// streamBuffer and connectionBuffer are the maximum number of bytes of bodies that a client
	// of HTTP/2 may send before the gateway reads them.
	streamBuffer, connectionBuffer = 32 << 10, 256 << 10
	// dialTime is how long a connection to the application may take to begin.
	dialTime = 2 * time.Second
	// appIdleTime is how long a connection to the application is kept for the next request. It
	// is shorter than what servers keep, so that no request meets one that is being closed.
	appIdleTime = time.Second
)

// Gateway is a session gateway.
type Gateway struct {
	Options
	times   times
	logger  *slog.Logger
	service *rpc.Service
	server  *http.Server
	app     *http.Transport
	appHost string
	conns   *connlimit.Limit
	// inside is the connection of all calls. It is set before the gateway serves.
	inside *flow.Conn
	// sessionsFail, appFails and replyFails are problems that are logged once until they change.
	sessionsFail, appFails, replyFails trouble
}

// New returns a gateway that does not serve yet.
func New(service *rpc.Service, logger *slog.Logger, options Options) *Gateway {
	return newGateway(service, logger, options, defaultTimes)
}

func newGateway(service *rpc.Service, logger *slog.Logger, options Options, times times) *Gateway {
	g := &Gateway{
		Options: options, times: times, logger: logger, service: service, conns: connlimit.New(0),
		appHost: net.JoinHostPort("127.0.0.1", strconv.Itoa(int(options.AppPort))),
	}
	g.sessionsFail.text = "the session gateway has no sessions to offer"
	g.appFails.text = "the application behind the session gateway does not answer"
	g.replyFails.text = "a reply of the application cannot pass the session gateway"
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	g.server = &http.Server{
		Handler: g, Protocols: &protocols, DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout: times.header, ReadTimeout: times.read, IdleTimeout: times.idle,
		// The handler sets another deadline when it begins to write.
		WriteTimeout:   times.read + 2*times.memory + times.app + times.write,
		MaxHeaderBytes: maxHeader,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerStream: streamBuffer, MaxReceiveBufferPerConnection: connectionBuffer,
			WriteByteTimeout: times.write,
		},
		ConnState: g.conns.Changed,
		ErrorLog:  slog.NewLogLogger(logger.Handler(), slog.LevelDebug), // clients cause these lines
	}
	dialer := net.Dialer{Timeout: dialTime}
	g.app = &http.Transport{
		DialContext: dialer.DialContext, DisableCompression: true, MaxResponseHeaderBytes: maxHeader, IdleConnTimeout: appIdleTime,
	}
	return g
}

// Serve serves a listener until Shutdown, and then returns nil. The caller has the share of
// the gateway. Half of its connections are for clients, and half for the application.
func (g *Gateway) Serve(listener net.Listener, caller *flow.Caller) error {
	g.inside = flow.NewInside(caller, unixsocket.NewIdentity(g.Name, g.Profile))
	most := int(max(1, caller.MaxConnections()/2))
	g.conns.SetMost(most)
	g.app.MaxConnsPerHost, g.app.MaxIdleConnsPerHost = most, most
	if err := g.server.Serve(g.conns.Listener(&buffering{listener})); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the session gateway: %w", err)
	}
	return nil
}

// sendBuffer is the number of bytes that the system buffers and that a client has not read. Linux
// doubles the number for its own needs, and counts the buffer as memory of the broker.
const sendBuffer = 32 << 10

// buffering is a listener whose connections have small buffers.
type buffering struct{ net.Listener }

// Accept implements net.Listener.
func (b *buffering) Accept() (net.Conn, error) {
	conn, err := b.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // it fails only if the connection has ended
	}
	return conn, err
}

// Shutdown accepts no more requests, and waits for the requests that have begun. When ctx ends,
// it cancels those that are left.
func (g *Gateway) Shutdown(ctx context.Context) {
	defer g.app.CloseIdleConnections()
	g.conns.CloseUnused()
	if g.server.Shutdown(ctx) != nil {
		_ = g.server.Close() // the connections end nevertheless
	}
}

// ready reports whether the profile offers sessions to the gateway.
func (g *Gateway) ready() bool {
	set := g.service.Served.Load()
	return set != nil && set.SessionPolicy(session.Owner{Caller: callers.Caller{Container: g.Name}, Socket: g.Name, Profile: g.Profile}) != nil
}
