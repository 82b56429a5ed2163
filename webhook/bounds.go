// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/webhook/server"
	"github.com/crypto-broker/crypto-broker-operator/webhook/shares"
)

// Limits of requests. Anybody in the cluster can open a connection to the webhook, and anybody
// who may create a pod or write a profile can make the API server call it.
const (
	// maxBodySize is the largest request in bytes: two objects of the largest size that the API
	// server accepts, 3 MiB each, and the fields around them.
	maxBodySize = 7 << 20

	// maxValues is the maximum number of values that a request has, see measure. A pod in use has
	// hundreds, and thousands with all its variables in managedFields.
	maxValues = 20_000

	// bodyShares is the number of bytes of bodies that are read at a time.
	bodyShares = 32 << 20

	// podShares and profileShares are the amounts of memory, in bytes as measure estimates them,
	// for the pods and the profiles that are decided on at one time.
	podShares     = 160 << 20
	profileShares = 64 << 20

	// leastPod and leastProfile are the smallest numbers of bytes for which a request counts.
	// They bound the use of processors: of one namespace, at most ten pods and two profiles are
	// decided on at one time, and of one address twice as many. A profile takes a processor for
	// milliseconds, and a pod may wait for a read.
	leastPod     = 4 << 20
	leastProfile = 8 << 20

	// maxWait is how long a request waits for its turn. The API server gives
	// up after five seconds.
	maxWait = 2 * time.Second

	// maxReadTime is how long a client may take to send a body, and maxWriteTime
	// how long to read the answer.
	maxReadTime  = 2 * time.Second
	maxWriteTime = 2 * time.Second

	// firstBuffer is the initial size in bytes of the buffer for a body. The buffer grows with
	// the body.
	firstBuffer = 16 << 10
)

// bounded calls next for the requests that the bounds allow, and refuses others.
type bounded struct {
	next http.Handler
	// bodies are the bytes of bodies, divided among addresses. Several handlers may
	// use the same shares.
	bodies *shares.Shares
	// work is divided among addresses, and the part of an address among namespaces.
	work *shares.Shares
	// least is the smallest part of work that a request takes, in bytes.
	least int64
	wait  time.Duration
}

// ServeHTTP answers 411 to a body of unknown length, and 413 to a body that is too large. If
// there is no room, it answers 429 with Retry-After, after which the API server tries again.
func (b *bounded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	client := shares.Holder{Client: server.ClientOf(r.RemoteAddr)}
	body := &body{client: client, shares: b.bodies}
	defer body.release()
	if refused := body.read(w, r); refused != nil {
		refused.answer(w)
		return
	}
	if !isObject(body.bytes) {
		(&refusedRequest{http.StatusBadRequest, "the request is not in JSON, expected an AdmissionReview"}).answer(w)
		return
	}
	size := measure(body.bytes)
	if size.values > maxValues {
		tooLarge("the request has %d values in its JSON, expected at most %d", size.values, maxValues).answer(w)
		return
	}

	worker := shares.Holder{Client: client.Client, Part: size.namespace}
	cost := min(max(size.memory(), b.least), b.work.Most(worker))
	waiting, cancel := context.WithTimeout(r.Context(), b.wait)
	defer cancel()
	if err := b.work.Acquire(waiting, worker, cost); err != nil {
		noRoom.answer(w)
		return
	}
	response := &written{header: http.Header{}, status: http.StatusOK}
	func() {
		defer b.work.Release(worker, cost)
		r.Body = io.NopCloser(bytes.NewReader(body.bytes))
		b.next.ServeHTTP(response, r)
	}()
	response.send(w)
}

// refusedRequest is the answer to a request that does not reach a handler.
type refusedRequest struct {
	status int
	text   string
}

var noRoom = &refusedRequest{http.StatusTooManyRequests, "too many requests are in flight, expected fewer: try again"}

func tooLarge(format string, arguments ...any) *refusedRequest {
	return &refusedRequest{http.StatusRequestEntityTooLarge, fmt.Sprintf(format, arguments...)}
}

func (a *refusedRequest) answer(w http.ResponseWriter) {
	refusedRequests.WithLabelValues(reasons[a.status]).Inc()
	if a.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	// The server does not read the rest of the body.
	w.Header().Set("Connection", "close")
	http.Error(w, a.text, a.status)
}

// body is the body of a request. It takes bytes from the shares when they arrive.
type body struct {
	client shares.Holder
	shares *shares.Shares
	bytes  []byte
	taken  int64
}

// read reads all of a request's body within maxReadTime.
func (b *body) read(w http.ResponseWriter, r *http.Request) *refusedRequest {
	length := r.ContentLength
	switch {
	case length < 0:
		return &refusedRequest{http.StatusLengthRequired, "the length of the request is not known, expected the header Content-Length"}
	case length > maxBodySize:
		return tooLarge("the request has %d bytes, expected at most %d", length, maxBodySize)
	}
	if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(maxReadTime)); err != nil {
		return &refusedRequest{http.StatusInternalServerError, fmt.Sprintf("the time to read the request could not be limited: %v", err)}
	}
	for int64(len(b.bytes)) < length {
		if len(b.bytes) == cap(b.bytes) && !b.grow(length) {
			return noRoom
		}
		n, err := r.Body.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		if err != nil && int64(len(b.bytes)) < length {
			return &refusedRequest{http.StatusBadRequest, fmt.Sprintf("the request could not be read within %s: %v", maxReadTime, err)}
		}
	}
	// net/http notices a closed connection only after a read has met the end of the
	// body.
	_, _ = r.Body.Read(make([]byte, 1))
	return nil
}

// grow doubles the buffer, up to length, and reports whether the client's share
// allows it.
func (b *body) grow(length int64) bool {
	size := min(max(2*int64(cap(b.bytes)), firstBuffer), length)
	more := size - int64(cap(b.bytes))
	if !b.shares.Try(b.client, more) {
		return false
	}
	b.taken += more
	grown := make([]byte, len(b.bytes), size)
	copy(grown, b.bytes)
	b.bytes = grown
	return true
}

func (b *body) release() {
	b.bytes = nil
	b.shares.Release(b.client, b.taken)
}

// written is an answer that is sent after the shares of work are released. So a client that does
// not read its answer holds no share of work.
type written struct {
	header http.Header
	status int
	bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *written) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *written) WriteHeader(status int) { w.status = status }

func (w *written) send(to http.ResponseWriter) {
	if err := http.NewResponseController(to).SetWriteDeadline(time.Now().Add(maxWriteTime)); err != nil {
		http.Error(to, fmt.Sprintf("the time to write the answer could not be limited: %v", err), http.StatusInternalServerError)
		return
	}
	maps.Copy(to.Header(), w.header)
	to.WriteHeader(w.status)
	_, _ = w.WriteTo(to) // a client that is gone needs no answer
}
