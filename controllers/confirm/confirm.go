// SPDX-License-Identifier: Apache-2.0

// Package confirm asks a broker which set of profiles it serves: GET /profiles
// on its status port.
//
// Anybody who may create pods decides what answers. So the client reads a
// few fields of a strict shape from a small body within a second, follows no
// redirect, uses no proxy, sends nothing of its own and asks addresses of pods
// only.
package confirm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

const (
	// Timeout bounds one question, from dialling to the last byte.
	Timeout = time.Second

	// MaxBody is the size in bytes up to which an answer is read.
	MaxBody = 8 << 10
)

// Answer is what a broker says about the set that it serves.
type Answer struct {
	// Digest identifies the set, "sha256:" and 64 hexadecimal digits; empty
	// while the broker has none.
	Digest string `json:"digest"`
	// Revision is the number of the set, 0 if sets are not numbered.
	Revision int64 `json:"revision"`
	// Since is when the broker began to serve it, by the clock of its node.
	Since time.Time `json:"since"`
	// Reason is one of the Reason constants of broker/profile.
	Reason string `json:"reason"`
	// Withdrawn are profiles that the broker served and that are out of service. If there
	// are fewer than eight, the last ones are empty. Older brokers report none.
	Withdrawn [8]Withdrawn `json:"withdrawn"`
	// Rollouts are the profiles that are rolled out, with the side that the broker is on. If
	// there are fewer than eight, the last ones are empty. Older brokers report none.
	Rollouts [8]Rollout `json:"rollouts"`
}

// Rollout is the side of a broker in the rollout of a profile, and how the calls of the
// profile ended since the broker came to that side.
type Rollout struct {
	Profile string `json:"profile"`
	// Digest identifies the new profile.
	Digest string `json:"digest"`
	// New is whether the broker serves the new profile, and Refused whether it should and
	// refuses it.
	New     bool `json:"new"`
	Refused bool `json:"refused"`
	// Calls are all that ended, and Failed those that did not succeed.
	Calls  int64 `json:"calls"`
	Failed int64 `json:"failed"`
}

// Withdrawn is a profile that a broker served and took out of service.
type Withdrawn struct {
	Profile string    `json:"profile"`
	Since   time.Time `json:"since"`
}

var (
	digestPattern = regexp.MustCompile(`^(sha256:[0-9a-f]{64})?$`)
	reasonPattern = regexp.MustCompile(`^[A-Za-z]{1,64}$`)
)

// Client asks brokers. It is safe for concurrent use.
type Client struct {
	http *http.Client
	// allowed says which addresses may be asked.
	allowed func(netip.Addr) bool
}

// NewClient returns a client that asks addresses that pods can have: unicast, and
// neither loopback nor link-local, where a cloud's metadata service answers.
func NewClient() *Client {
	return newClient(func(a netip.Addr) bool {
		return a.IsGlobalUnicast() && !a.IsLoopback() && !a.IsLinkLocalUnicast()
	})
}

// NewLoopbackClient returns a client that asks loopback addresses only. It is for
// tests, whose brokers listen there.
func NewLoopbackClient() *Client { return newClient(netip.Addr.IsLoopback) }

func newClient(allowed func(netip.Addr) bool) *Client {
	transport := &http.Transport{
		Proxy:       nil, // a proxy from the environment would see and answer for pods
		DialContext: (&net.Dialer{Timeout: Timeout}).DialContext,
		// Polls of one broker follow each other within a fraction of a second.
		IdleConnTimeout:        2 * time.Second,
		MaxIdleConns:           512,
		MaxIdleConnsPerHost:    1,
		MaxConnsPerHost:        2,
		MaxResponseHeaderBytes: MaxBody,
		// Most connections have one question and one answer, both of which are small.
		ReadBufferSize:        1 << 10,
		WriteBufferSize:       1 << 10,
		DisableCompression:    true, // a small body that unpacks to a large one
		ResponseHeaderTimeout: Timeout,
	}
	return &Client{
		http: &http.Client{
			Transport:     transport,
			Timeout:       Timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		allowed: allowed,
	}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Ask asks the broker at the address. It returns an error if the answer is missing, or
// has another form than a broker's. The error quotes nothing of the answer but the HTTP
// status.
func (c *Client) Ask(ctx context.Context, address netip.AddrPort) (Answer, error) {
	body, _, err := c.Fetch(ctx, Question{Whom: "the broker", Address: address, Path: contract.ProfilesPath, MaxBody: MaxBody})
	if err != nil {
		return Answer{}, err
	}
	var answer Answer
	if err := json.Unmarshal(body, &answer); err != nil {
		return Answer{}, errors.New("the broker's answer is not the expected JSON")
	}
	if !digestPattern.MatchString(answer.Digest) || !reasonPattern.MatchString(answer.Reason) || answer.Revision < 0 {
		return Answer{}, errors.New("the answer has a digest, a revision or a reason that no broker writes")
	}
	return answer, nil
}

// Question is a request for a document on the status port of a pod.
type Question struct {
	// Whom is who is asked, for errors, such as "the broker".
	Whom    string
	Address netip.AddrPort
	Path    string
	// MaxBody is the size in bytes up to which the document is read.
	MaxBody int64
	// ETag is the ETag of the document that the caller has. It is empty if the caller has none.
	ETag string
}

// Fetch asks a question. It returns the document and its ETag, or no document if the one that is
// known is still the newest. Its errors quote nothing of the answer but the HTTP status.
func (c *Client) Fetch(ctx context.Context, q Question) (body []byte, etag string, err error) {
	if !q.Address.IsValid() || !c.allowed(q.Address.Addr().Unmap()) {
		return nil, "", fmt.Errorf("%s is not an address of a pod", q.Address)
	}
	if q.Address.Port() < contract.MinStatusPort {
		return nil, "", fmt.Errorf("port %d of %s's status is below %d", q.Address.Port(), q.Whom, contract.MinStatusPort)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+q.Address.String()+q.Path, nil)
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("User-Agent", "crypto-broker-operator")
	if q.ETag != "" {
		request.Header.Set("If-None-Match", q.ETag)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, "", fmt.Errorf("ask %s: %w", q.Whom, unreachable(err))
	}
	defer func() { _ = response.Body.Close() }() // nothing is read afterwards
	if response.StatusCode == http.StatusNotModified && q.ETag != "" {
		return nil, q.ETag, nil
	}
	if response.StatusCode != http.StatusOK {
		return nil, "", fmt.Errorf("%s answered HTTP status %d, expected 200", q.Whom, response.StatusCode)
	}
	body, err = io.ReadAll(io.LimitReader(response.Body, q.MaxBody+1))
	if err != nil {
		return nil, "", fmt.Errorf("read %s's answer: %w", q.Whom, unreachable(err))
	}
	if int64(len(body)) > q.MaxBody {
		return nil, "", fmt.Errorf("%s's answer has more than %d bytes", q.Whom, q.MaxBody)
	}
	return body, response.Header.Get("ETag"), nil
}

// unreachable returns a network error without the URL, which the caller knows.
func unreachable(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("no answer within %s", Timeout)
	}
	var operation *net.OpError
	if errors.As(err, &operation) {
		return operation.Err
	}
	return err
}
