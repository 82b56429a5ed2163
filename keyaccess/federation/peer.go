// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
)

// A peer with tripAfter failures within tripWindow gets no requests until the time of [Config.Retry] is over.
const (
	tripAfter  = 3
	tripWindow = 30 * time.Second
	// tripBuckets is the number of parts of the window, which moves by one part at a time.
	tripBuckets = 6
)

// A late reply, or none to a caller who goes, says something about the peer only if it had some time and little to do. Otherwise
// callers with short deadlines or large requests could make the service stop asking a peer that
// works.
const (
	fairTime    = time.Second
	fairObjects = 16
)

// Limits of connections and replies.
const (
	maxConnections  = 64
	idleTime        = 90 * time.Second
	pingAfter       = 15 * time.Second
	pingTimeout     = 5 * time.Second
	handshakeTime   = 5 * time.Second
	maxReplyHeader  = 16 << 10
	replyBytes      = 64 << 10
	replyObject     = 16 << 10
	maxErrorOfReply = 300
)

// The errors of a request to a peer. Their texts are for clients.
var (
	// errFailed says that the peer does not work. It is the only error that counts for the breaker.
	errFailed = errors.New("the service gave an answer that is not valid")
	errNotNow = errors.New("the service did not answer lately, and is not asked for now")
	// errLate says that the reply came too late, for which the peer is perhaps not to blame.
	errLate    = errors.New("the service did not answer in time")
	errRefused = errors.New("the service has refused the request")
	errBusy    = errors.New("the service has too many requests")
	// errSpared is the cause of the end of a request that nobody needs any more.
	errSpared = errors.New(textShare)
)

// Ending is how a request to a peer ended.
type Ending string

// The endings.
const (
	// Answered says that the peer has results, whatever they are.
	Answered Ending = "answered"
	// Failed says that the peer does not work. It is the only ending that counts for the breaker.
	Failed Ending = "failed"
	// Late says that the reply came too late. The cause may be the deadline of the caller or the network, and not the peer.
	Late Ending = "late"
	// Refused says that the peer does not accept the request.
	Refused Ending = "refused"
	// Busy says that the peer has too many requests.
	Busy Ending = "busy"
	// NotAsked says that no request was made, because the peer has failed before.
	NotAsked Ending = "not asked"
	// Ended says that nobody waited for the reply any more.
	Ended Ending = "ended"
)

// Endings are all endings.
var Endings = []Ending{Answered, Failed, Late, Refused, Busy, NotAsked, Ended}

// endingOf returns how a request with an error ended.
func endingOf(err error) Ending {
	switch {
	case err == nil:
		return Answered
	case errors.Is(err, context.Canceled):
		return Ended
	case errors.Is(err, errLate):
		return Late
	case errors.Is(err, errRefused):
		return Refused
	case errors.Is(err, errBusy):
		return Busy
	case errors.Is(err, errNotNow):
		return NotAsked
	default:
		return Failed
	}
}

// peer is a peer with its connections.
type peer struct {
	Peer
	client  *http.Client
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	log     *slog.Logger
	// answers counts the replies of the peer, whatever they say.
	answers atomic.Uint64
}

func newPeer(settings Peer, config Config) (*peer, error) {
	secure, err := tlsprovider.New(tlsprovider.Config{Authorities: settings.Authorities, MinVersion: tls.VersionTLS13, Sessions: 8})
	if err != nil {
		return nil, fmt.Errorf("read the authorities: %w", err)
	}
	transport := &http.Transport{
		ForceAttemptHTTP2: true, HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		MaxConnsPerHost: maxConnections, MaxIdleConnsPerHost: maxConnections, IdleConnTimeout: idleTime,
		TLSHandshakeTimeout: handshakeTime, MaxResponseHeaderBytes: maxReplyHeader,
	}
	if err := secure.Secure(transport, settings.URL); err != nil {
		return nil, err
	}
	p := &peer{Peer: settings, log: config.Log.With("peer", settings.URL)}
	// A redirect would send the caller's credentials to an address that nobody has configured.
	p.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	p.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name: settings.URL, Interval: tripWindow, BucketPeriod: tripWindow / tripBuckets, Timeout: config.Retry,
		ReadyToTrip: func(counts gobreaker.Counts) bool { return counts.TotalFailures >= tripAfter },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			switch {
			case to == gobreaker.StateClosed:
				p.log.Info("the peer gets requests again")
			case from == gobreaker.StateClosed:
				p.log.Warn("the peer has failed several times and gets no requests for now", "retryIn", config.Retry)
			}
		},
		IsSuccessful: func(err error) bool { return !errors.Is(err, errFailed) },
		IsExcluded:   func(err error) bool { return errors.Is(err, errLate) || errors.Is(err, context.Canceled) },
	})
	return p, nil
}

// within has a request made if the peer may have one, and notes how it ended. objects is the
// number of data keys that it asks for.
func (p *peer) within(ctx context.Context, objects int, request func(context.Context) error) (err error) {
	done, err := p.breaker.Allow()
	if err != nil {
		return errNotNow
	}
	counted := errFailed // a panic counts as this outcome
	defer func() { done(counted) }()
	limit := p.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		limit = min(limit, left-reserve(left))
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began, answers := time.Now(), p.answers.Load()
	err = request(limited)
	switch {
	case err == nil, errors.Is(err, errRefused), errors.Is(err, errBusy):
		p.answers.Add(1)
	case ctx.Err() != nil:
		// Anybody who asks does not wait any more. That says something about the peer only if it had some time and has answered nobody.
		if time.Since(began) >= fairTime && objects <= fairObjects && p.answers.Load() == answers && !errors.Is(context.Cause(ctx), errSpared) {
			return context.Canceled // and counted says that the peer has failed
		}
		err = context.Canceled
	case limited.Err() != nil && (limit < min(fairTime, p.Timeout) || objects > fairObjects):
		err = errLate
	case limited.Err() != nil:
		err = fmt.Errorf("%w: no answer within %s", errFailed, limit.Round(time.Millisecond))
	}
	counted = err
	return err
}

// reserve is the part of the time that a caller waits which the service keeps for its own work after the peers have answered.
func reserve(left time.Duration) time.Duration { return min(left/5, 250*time.Millisecond) }

// send sends the signed request of a client with a statement, and returns the statement of the reply.
func (p *peer) send(ctx context.Context, statement, signed string, objects int) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+PathRewrap, strings.NewReader(signed))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set(HeaderStatement, statement)
	reply, err := p.client.Do(request)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errFailed, err)
	}
	defer reply.Body.Close()
	switch status := reply.StatusCode; {
	case status == http.StatusTooManyRequests:
		return "", errBusy
	case status >= 400 && status < 500:
		text, _ := io.ReadAll(io.LimitReader(reply.Body, maxErrorOfReply)) // it is for the log only
		return "", fmt.Errorf("%w: status %d: %q", errRefused, status, bytes.TrimSpace(text))
	case status != http.StatusOK:
		return "", fmt.Errorf("%w: found status %d, expected 200", errFailed, status)
	}
	limit := int64(replyBytes + objects*replyObject)
	text, err := io.ReadAll(io.LimitReader(reply.Body, limit+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %w", errFailed, err)
	case int64(len(text)) > limit:
		return "", fmt.Errorf("%w: found a reply of more than %d bytes", errFailed, limit)
	}
	return string(text), nil
}
