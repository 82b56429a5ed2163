// SPDX-License-Identifier: Apache-2.0

package sessiongateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/limits"
	"github.com/crypto-broker/crypto-broker-operator/broker/session"
)

// The headers that tell the application whose request it is. A request without encryption has
// none of them.
const (
	headerSessionID       = "X-Session-Id"
	headerSessionClientID = "X-Session-Client-Id"
	headerSessionProtocol = "X-Session-Protocol"
)

// forwarded are the headers of a request that the application gets. No version of the protocol
// authenticates headers, so a header that may change the result, such as X-Original-Url, is not
// in the list.
var forwarded = []string{
	"Accept", "Accept-Language", "Authorization", "Cookie", "User-Agent", "Traceparent", "Tracestate", "X-Correlation-Id", "X-Request-Id",
	"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip",
}

// appReply is a reply of the application.
type appReply struct {
	status      int
	contentType string
	body        []byte
	// size is the size of the body that a reply to GET would have, or negative if the reply does not say it.
	size int64
}

// newRequest returns a request to the application. It has only the method, the path in normal
// form, the host, and the forwarded headers of the client's request.
func (c *call) newRequest(ctx context.Context, path string) *http.Request {
	out := (&http.Request{
		Method: c.r.Method, Host: c.r.Host, Header: http.Header{"User-Agent": nil}, // nil, so that Go adds no header of its own
		URL:   &url.URL{Scheme: "http", Host: c.appHost, Opaque: path}, // Opaque is written as it is
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if out.Host == "" {
		out.Host = c.appHost
	}
	for _, name := range forwarded {
		if values := c.r.Header[name]; len(values) > 0 {
			out.Header[name] = values
		}
	}
	if host, _, err := net.SplitHostPort(c.r.RemoteAddr); err == nil {
		out.Header.Set("X-Forwarded-For", strings.Join(append(slices.Clone(c.r.Header["X-Forwarded-For"]), host), ", "))
	}
	return out
}

// forward sends a decrypted request to the application, and returns the reply. It overwrites the
// plaintext.
func (c *call) forward(opened *session.Opened) (*appReply, *refusal) {
	ctx, cancel := context.WithTimeout(c.r.Context(), c.times.app)
	defer cancel()
	out := c.newRequest(ctx, opened.Path)
	out.Header.Set(headerSessionID, opened.ID)
	out.Header.Set(headerSessionProtocol, opened.Protocol.String())
	if opened.ClientID != "" {
		out.Header.Set(headerSessionClientID, opened.ClientID)
	}
	body := &plaintext{bytes: opened.Plaintext}
	if len(opened.Plaintext) > 0 {
		out.Header.Set("Content-Type", contentTypeOf(opened.Plaintext))
		out.ContentLength, out.GetBody = int64(len(opened.Plaintext)), body.open
		out.Body, _ = body.open() // this fails only after the end of the connection
	}
	return c.exchange(out, body)
}

// contentTypeOf returns the content type of a decrypted body. It does not use the header of the
// client's request, which describes the encrypted body and is not authenticated.
func contentTypeOf(body []byte) string {
	if json.Valid(body) {
		return "application/json"
	}
	return "application/octet-stream"
}

// plain serves a request without encryption.
func (c *call) plain() *refusal {
	if !c.normal || !slices.Contains(c.Plain, c.path) || c.r.Method != http.MethodGet && c.r.Method != http.MethodHead || c.r.ContentLength != 0 {
		return plainRefused
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), c.times.app)
	defer cancel()
	reply, refused := c.exchange(c.newRequest(ctx, c.path), &plaintext{})
	if refused != nil {
		return refused
	}
	if reply.contentType != "" {
		c.w.Header().Set("Content-Type", reply.contentType)
	} else {
		c.w.Header()["Content-Type"] = nil
	}
	if c.r.Method == http.MethodHead {
		c.writeHead(c.w, reply.status, reply.size)
	} else {
		c.write(c.w, reply.status, reply.body)
	}
	return nil
}

// exchange sends a request to the application and reads the reply. When it releases the memory of
// the request, the transport does not read the body any more.
func (c *call) exchange(out *http.Request, body *plaintext) (reply *appReply, refused *refusal) {
	_ = c.timed("app", func() error {
		response, err := c.app.RoundTrip(out)
		body.end()
		if err != nil {
			refused = c.appFailed(out.Context(), err)
			return err
		}
		defer response.Body.Close()
		reply, refused, err = c.readReply(response)
		return err
	})
	if refused == nil {
		c.appFails.over()
	}
	return reply, refused
}

// readReply reads a reply of the application, of 1 MiB at most.
func (c *call) readReply(response *http.Response) (*appReply, *refusal, error) {
	problem := ""
	contentType := response.Header.Get("Content-Type")
	switch {
	case response.StatusCode < http.StatusOK:
		problem = "it has a status below 200"
	case response.ContentLength > limits.MaxInputSize && c.r.Method != http.MethodHead:
		problem = "it has more than 1 MiB"
	case strings.HasPrefix(strings.ToLower(contentType), "text/event-stream"):
		problem = "it is a stream of events, and replies are encrypted as a whole"
	case response.Header.Get("Content-Encoding") != "":
		problem = "it has a Content-Encoding, which clients would not learn"
	}
	if problem != "" {
		return nil, c.replyFailed(problem), nil
	}
	size := response.ContentLength
	if c.r.Method == http.MethodHead {
		size = 0
	}
	body, refused, err := c.readReplyBody(response.Body, size)
	if refused != nil {
		return nil, refused, err
	}
	if err != nil {
		clear(body)
		return nil, c.appFailed(response.Request.Context(), err), err
	}
	c.replyFails.over()
	return &appReply{response.StatusCode, contentType, body, response.ContentLength}, nil, nil
}

// readReplyBody reads the body of a reply. size is negative if it is not known.
func (c *call) readReplyBody(from io.Reader, size int64) ([]byte, *refusal, error) {
	var first []byte
	if size < 0 { // most replies of unknown size are small
		var err error
		if first, err = readUpTo(from, flow.SmallMessage); err != nil || len(first) < flow.SmallMessage {
			return first, nil, err
		}
		defer clear(first)
	}
	if size := planned(size); size > flow.SmallMessage && c.slot.ReserveInstead(c.ctx, callName, replyCopies*size, c.times.memory) != nil {
		return nil, unavailable, nil
	}
	if size >= 0 {
		body, err := readAll(from, size)
		return body, nil, err
	}
	rest, err := readUpTo(from, limits.MaxInputSize+1-len(first))
	defer clear(rest)
	if len(first)+len(rest) > limits.MaxInputSize {
		return nil, c.replyFailed("it has more than 1 MiB"), nil
	}
	return slices.Concat(first, rest), nil, err
}

// readUpTo reads everything, up to most bytes. It leaves no copies in memory.
func readUpTo(from io.Reader, most int) ([]byte, error) {
	all := bytes.NewBuffer(make([]byte, 0, most+bytes.MinRead))
	_, err := all.ReadFrom(io.LimitReader(from, int64(most)))
	return all.Bytes(), err
}

// replyFailed logs why a reply cannot be forwarded.
func (c *call) replyFailed(problem string) *refusal {
	c.replyFails.log(c.logger, problem)
	return badGateway
}

// appFailed returns the answer to a client whose request got no reply, or only a part of one. ctx
// is the context of the request to the application.
func (c *call) appFailed(ctx context.Context, err error) *refusal {
	if c.r.Context().Err() != nil { // the client has gone
		return badGateway
	}
	var network net.Error
	if ctx.Err() != nil || errors.As(err, &network) && network.Timeout() {
		c.appFails.log(c.logger, fmt.Sprintf("no whole reply from %s within %s", c.appHost, c.times.app))
		return gatewayTimeout
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		c.appFails.log(c.logger, fmt.Sprintf("no connection to %s", c.appHost))
		return unavailable
	}
	c.appFails.log(c.logger, fmt.Sprintf("the connection to %s ended before the reply, or the reply is not HTTP", c.appHost))
	return badGateway
}
