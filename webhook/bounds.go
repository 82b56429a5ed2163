// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
)

// Bounds on what requests may take, all of them together. Anybody in the
// cluster can open a connection to the webhook.
const (
	// maxBodySize is the largest request in bytes: two objects of the largest
	// size that the API server accepts, 3 MiB each, and what is around them.
	maxBodySize = 7 << 20

	// maxBytesInFlight is how many bytes of bodies are read and worked on at a
	// time.
	maxBytesInFlight = 16 << 20

	// minBodyCost is what a request counts for at least, so that the number of
	// requests in flight is bounded too, by 256.
	minBodyCost = 64 << 10

	// maxWait is how long a request waits for its turn. The API server gives
	// up after five seconds.
	maxWait = 2 * time.Second

	// maxReadTime is how long a client may take to send a body.
	maxReadTime = 2 * time.Second
)

// bounded lets requests through to next one by one as the bounds allow.
// Requests of all bounded handlers that share bytes count together.
type bounded struct {
	next  http.Handler
	bytes *semaphore.Weighted
	wait  time.Duration
}

// ServeHTTP answers 413 to a body that is too large, and 429 with Retry-After
// when there is no room, which makes the API server try again.
func (b *bounded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength > maxBodySize {
		http.Error(w, fmt.Sprintf("the request has %d bytes, expected at most %d", r.ContentLength, maxBodySize), http.StatusRequestEntityTooLarge)
		return
	}
	cost := int64(maxBodySize) // a body of unknown length
	if r.ContentLength >= 0 {
		cost = max(r.ContentLength, minBodyCost)
	}
	waiting, cancel := context.WithTimeout(r.Context(), b.wait)
	defer cancel()
	if err := b.bytes.Acquire(waiting, cost); err != nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests are in flight, expected fewer: try again", http.StatusTooManyRequests)
		return
	}
	defer b.bytes.Release(cost)

	body, status, err := readBody(w, r)
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	b.next.ServeHTTP(w, r)
}

// readBody reads all of a request's body within maxReadTime, or returns the
// status to answer with.
func readBody(w http.ResponseWriter, r *http.Request) (body []byte, status int, err error) {
	connection := http.NewResponseController(w)
	if err := connection.SetReadDeadline(time.Now().Add(maxReadTime)); err != nil {
		return nil, http.StatusInternalServerError, fmt.Errorf("the time to read the request could not be limited: %w", err)
	}
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodySize))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the request is larger than expected: at most %d bytes", maxBodySize)
	case err != nil:
		return nil, http.StatusBadRequest, fmt.Errorf("the request could not be read within %s: %w", maxReadTime, err)
	}
	return body, 0, nil
}
