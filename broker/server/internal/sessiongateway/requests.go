// SPDX-License-Identifier: Apache-2.0

package sessiongateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/limits"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
	"github.com/crypto-broker/crypto-broker-operator/broker/session"
)

// The paths of the protocol.
const (
	initPath   = contract.SessionInitPath
	healthPath = contract.SessionHealthPath
)

// The headers of the protocol.
const (
	headerKid            = "X-Kid"
	headerEncAlg         = "X-Enc-Alg"
	headerIV             = "X-Iv"
	headerTag            = "X-Tag"
	headerAAD            = "X-Aad"
	headerNonce          = "X-Nonce"
	headerTimestamp      = "X-Timestamp"
	headerIdempotencyKey = "X-Idempotency-Key"
	headerClientID       = "X-Clientid"
)

var protocolHeaders = []string{
	headerKid, headerEncAlg, headerIV, headerTag, headerAAD, headerNonce, headerTimestamp, headerIdempotencyKey, headerClientID,
}

// callName names a request in errors of its share.
const callName = requests.MethodName("session gateway")

// maxAsked is a lifetime in seconds that is longer than any profile allows.
const maxAsked = 24 * 60 * 60

// maxInit is the size in bytes of the largest body of /session/init.
const maxInit = 4 << 10

// call is a request with its slot.
type call struct {
	*Gateway
	w    http.ResponseWriter
	r    *http.Request
	ctx  context.Context //nolint:containedctx // a call has its context for as long as it lasts
	slot *flow.Slot
	// received is the path as the client sent it, path is its normal form, and normal reports
	// whether it has a normal form.
	received, path string
	normal         bool
	took           []string // for Server-Timing
}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if unclearEnd(r) {
		w.Header().Set("Connection", "close")
	}
	slot, err := g.inside.Enter(callName)
	if err != nil {
		g.refuse(w, unavailable)
		return
	}
	defer slot.End()
	c := &call{Gateway: g, w: w, r: r, slot: slot, ctx: g.inside.Inside(withTrace(r))}
	defer func() {
		if cause := recover(); cause != nil {
			_ = g.service.Panicked(callName.String(), cause) // Panicked logs the cause
			g.refuse(w, internalError)
		}
	}()
	c.received = receivedPath(r)
	c.path, c.normal = session.NormalPath(c.received)
	if refused := c.serve(); refused != nil {
		g.refuse(w, refused)
	}
}

// unclearEnd reports whether a proxy in front may see the end of a request elsewhere: with both Transfer-Encoding and
// Content-Length, and with Transfer-Encoding in HTTP/1.0. No other request may follow on the connection then (RFC 9112, section 6.1).
// The result is also true for other requests with Transfer-Encoding, and for all requests of HTTP/1.0, because net/http has removed
// the second header: Content-Length in the first case, and Transfer-Encoding in the second one.
func unclearEnd(r *http.Request) bool {
	return r.ProtoMajor == 1 && (r.ProtoMinor == 0 || len(r.TransferEncoding) > 0)
}

// receivedPath returns the path of a request as the client sent it. A request may have an
// absolute URI instead of a path, which servers have to accept (RFC 9112, section 3.2.2). Then
// net/http uses the host of the URI and ignores the header Host. receivedPath returns a URI
// unchanged, which is not a valid path, if its scheme is not http or https, if it has no host, or
// if it has a user.
func receivedPath(r *http.Request) string {
	_, rest, absolute := strings.Cut(r.RequestURI, "://")
	if u := r.URL; !absolute || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return r.RequestURI
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		return rest[end:]
	}
	return "/" // an empty path means "/" (RFC 9110, section 4.2.3)
}

// withTrace returns the context of a request with its trace context, in the form of gRPC.
func withTrace(r *http.Request) context.Context {
	headers := metadata.MD{}
	for _, name := range []string{"traceparent", "tracestate"} {
		if value := r.Header.Get(name); value != "" {
			headers.Set(name, value)
		}
	}
	if len(headers) == 0 {
		return r.Context()
	}
	return metadata.NewIncomingContext(r.Context(), headers)
}

// serve answers a request, or returns the answer.
func (c *call) serve() *refusal {
	switch {
	case c.normal && c.path == initPath:
		return c.begin()
	case c.normal && c.path == healthPath:
		return c.health()
	case slices.ContainsFunc(protocolHeaders, func(name string) bool { return len(c.r.Header[name]) > 0 }):
		return c.encrypted()
	default:
		return c.plain()
	}
}

// health serves /health. The protocol uses the name redis for any store.
func (c *call) health() *refusal {
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
		c.w.Header().Set("Allow", "GET, HEAD")
		return wrongMethod
	}
	code, state := http.StatusOK, "ok"
	if !c.ready() {
		code, state = http.StatusServiceUnavailable, "error"
	}
	c.writeJSON(c.w, code, fmt.Sprintf(`{"status":%q,"timestamp":%d,"redis":%q}`, state, time.Now().UnixMilli(), state))
	return nil
}

// begin serves /session/init.
func (c *call) begin() *refusal {
	if c.r.Method != http.MethodPost {
		c.w.Header().Set("Allow", http.MethodPost)
		return wrongMethod
	}
	body, refused := readBody(c.w, c.r, maxInit)
	if refused != nil {
		return refused
	}
	var in struct {
		KeyAgreement    string `json:"keyAgreement"`
		ClientPublicKey string `json:"clientPublicKey"`
		// TTLSec is any number: it is clamped, and some languages write 1800.0.
		TTLSec float64 `json:"ttlSec"`
	}
	if json.Unmarshal(body, &in) != nil || in.KeyAgreement != algorithm.SessionKeyAgreement { // of versions 1 and 2
		return cryptoError
	}
	h := c.header
	init := session.Init{
		KeyAgreement: in.KeyAgreement, ClientPublicKey: in.ClientPublicKey, TTL: time.Duration(min(max(0, in.TTLSec), maxAsked)) * time.Second,
		Nonce: h(headerNonce), Timestamp: h(headerTimestamp), ClientID: h(headerClientID),
	}
	if key := h(headerIdempotencyKey); key != "" && init.Nonce == "" && init.Timestamp == "" {
		init.Timestamp, init.Nonce, _ = strings.Cut(key, ".") // version 2
	}
	var begun session.Begun
	err := c.timed("init", func() error {
		return c.service.RunInside(c.ctx, profile.OpInitSession, len(body), func(of *handlers.Call) (err error) {
			begun, err = c.service.InitSession(of, c.Profile, init)
			return err
		})
	})
	if err != nil {
		return c.refusalOf(err, cryptoError, unavailable)
	}
	c.sessionsFail.over()
	reply, err := json.Marshal(struct {
		SessionID       string `json:"sessionId"`
		ServerPublicKey string `json:"serverPublicKey"`
		EncAlg          string `json:"encAlg"`
		ExpiresInSec    int64  `json:"expiresInSec"`
	}{begun.ID, begun.ServerPublicKey, begun.EncAlg, int64(begun.Lifetime / time.Second)})
	if err != nil {
		return internalError
	}
	c.setTiming()
	c.writeJSON(c.w, http.StatusOK, string(reply))
	return nil
}

// header returns a header of the protocol. If it is there several times, it returns all values with commas
// between them, as RFC 9110, section 5.3, says. No header of the protocol has a comma, so the
// broker refuses them.
func (c *call) header(name string) string { return strings.Join(c.r.Header[name], ",") }

// encrypted serves an encrypted request.
func (c *call) encrypted() *refusal {
	switch c.r.Method {
	case http.MethodHead, http.MethodConnect, http.MethodTrace: // replies to these methods cannot be encrypted
		return wrongMethod
	}
	size := planned(c.r.ContentLength)
	if size > limits.MaxInputSize {
		return tooLarge
	}
	if size > flow.SmallMessage && c.slot.Reserve(c.ctx, callName, requestCopies*size, c.times.memory) != nil {
		return unavailable
	}
	body, refused := readBody(c.w, c.r, limits.MaxInputSize)
	if refused != nil {
		return refused
	}
	h := c.header
	request := &session.Request{
		Method: c.r.Method, Path: c.received, Kid: h(headerKid), EncAlg: h(headerEncAlg), Body: body,
		IV: h(headerIV), Tag: h(headerTag), AAD: h(headerAAD), Nonce: h(headerNonce), Timestamp: h(headerTimestamp),
		IdempotencyKey: h(headerIdempotencyKey), ClientID: h(headerClientID),
	}
	var opened session.Opened
	err := c.timed("open", func() error {
		return c.service.RunInside(c.ctx, profile.OpOpenRequest, len(body), func(of *handlers.Call) (err error) {
			opened, err = c.service.OpenRequest(of, c.Profile, request)
			return err
		})
	})
	if err != nil {
		return c.refusalOf(err, sessionExpired, tooManyRequests)
	}
	c.sessionsFail.over()
	reply, refused := c.forward(&opened)
	if refused != nil {
		return refused
	}
	defer clear(reply.body)
	return c.seal(&opened, reply)
}

// seal encrypts a reply and writes it.
func (c *call) seal(opened *session.Opened, from *appReply) *refusal {
	var sealed session.Reply
	err := c.timed("seal", func() error {
		return c.service.RunInside(c.ctx, profile.OpSealReply, len(from.body), func(of *handlers.Call) (err error) {
			sealed, err = c.service.SealReply(of, c.Profile, opened.ID, opened.ClientPath, "", from.body)
			of.ReplySize = len(sealed.Body)
			return err
		})
	})
	if err != nil {
		if status.Code(err) == codes.FailedPrecondition { // the session has ended
			return sessionExpired
		}
		return c.refusalOf(err, internalError, unavailable)
	}
	for name, value := range map[string]string{
		headerKid: sealed.Kid, headerEncAlg: sealed.EncAlg, headerIV: sealed.IV, headerTag: sealed.Tag, headerAAD: sealed.AAD,
		headerNonce: sealed.Nonce, headerTimestamp: sealed.Timestamp, headerIdempotencyKey: sealed.IdempotencyKey, headerClientID: sealed.ClientID,
	} {
		if value != "" {
			c.w.Header().Set(name, value)
		}
	}
	c.setTiming()
	c.w.Header().Set("Content-Type", "application/octet-stream")
	code := from.status
	switch code {
	case http.StatusNoContent, http.StatusResetContent, http.StatusNotModified: // replies with these codes have no body
		code = http.StatusOK
	}
	c.write(c.w, code, sealed.Body)
	return nil
}

// timed runs a step and records how long it took.
func (c *call) timed(step string, run func() error) error {
	began := time.Now()
	err := run()
	c.took = append(c.took, fmt.Sprintf("%s;dur=%.3f", step, float64(time.Since(began))/float64(time.Millisecond)))
	return err
}

// setTiming sets the header Server-Timing, with milliseconds.
func (c *call) setTiming() { c.w.Header().Set("Server-Timing", strings.Join(c.took, ", ")) }
