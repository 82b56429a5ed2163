// SPDX-License-Identifier: Apache-2.0

package sessiongateway

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// refusal is an answer without encryption.
type refusal struct {
	status int
	name   string
	// again is the header Retry-After in seconds, 0 for none.
	again int
}

// The answers without encryption. The protocol defines the first two.
var (
	cryptoError     = &refusal{status: http.StatusBadRequest, name: "CRYPTO_ERROR"}
	sessionExpired  = &refusal{status: http.StatusUnauthorized, name: "SESSION_EXPIRED"}
	plainRefused    = &refusal{status: http.StatusForbidden, name: "ENCRYPTION_REQUIRED"}
	wrongMethod     = &refusal{status: http.StatusMethodNotAllowed, name: "METHOD_NOT_ALLOWED"}
	tooSlow         = &refusal{status: http.StatusRequestTimeout, name: "REQUEST_TIMEOUT"}
	tooLarge        = &refusal{status: http.StatusRequestEntityTooLarge, name: "REQUEST_TOO_LARGE"}
	tooManyRequests = &refusal{status: http.StatusTooManyRequests, name: "TOO_MANY_REQUESTS", again: 1}
	internalError   = &refusal{status: http.StatusInternalServerError, name: "INTERNAL"}
	badGateway      = &refusal{status: http.StatusBadGateway, name: "BAD_GATEWAY"}
	unavailable     = &refusal{status: http.StatusServiceUnavailable, name: "UNAVAILABLE", again: 1}
	gatewayTimeout  = &refusal{status: http.StatusGatewayTimeout, name: "GATEWAY_TIMEOUT"}
)

// refusalOf returns the answer for an error of the broker. refused is the answer for a request
// that the broker does not accept, and full is the answer if there is no room.
func (g *Gateway) refusalOf(err error, refused, full *refusal) *refusal {
	switch code := status.Code(err); {
	case code == codes.InvalidArgument && g.ready(): // and not because the profile does not exist
		return refused
	case code == codes.ResourceExhausted:
		return full
	case code == codes.Canceled, code == codes.DeadlineExceeded: // the client has gone
		return unavailable
	}
	g.sessionsFail.log(g.logger, status.Convert(err).Message())
	return unavailable
}

// refuse writes an answer without encryption.
func (g *Gateway) refuse(w http.ResponseWriter, r *refusal) {
	if r.again > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(r.again))
	}
	g.writeJSON(w, r.status, `{"error":"`+r.name+`"}`)
}

func (g *Gateway) writeJSON(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "application/json")
	g.write(w, code, []byte(body))
}

// write writes an answer.
func (g *Gateway) write(w http.ResponseWriter, code int, body []byte) {
	g.writeHead(w, code, int64(len(body)))
	_, _ = w.Write(body) // a client that has gone needs no answer
}

// writeHead writes an answer without its body. size is the size of the body, or negative if it is not known. A separate deadline
// limits how long the client may take to read the answer.
func (g *Gateway) writeHead(w http.ResponseWriter, code int, size int64) {
	// It fails only if the connection has ended, and then Write fails as well.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(g.times.write))
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if size >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	}
	w.WriteHeader(code)
}

// trouble logs a problem once. It logs again if the problem changes, or if it returns after it
// was over.
type trouble struct {
	text string
	last atomic.Pointer[string]
}

func (t *trouble) log(to *slog.Logger, reason string) {
	if last := t.last.Swap(&reason); last == nil || *last != reason {
		to.LogAttrs(context.Background(), slog.LevelWarn, t.text, slog.String("reason", reason))
	}
}

// over records that the problem is over.
func (t *trouble) over() {
	if t.last.Load() != nil {
		t.last.Store(nil)
	}
}
