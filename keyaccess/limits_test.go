// SPDX-License-Identifier: Apache-2.0

package keyaccess_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/limit"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/tdfpolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
)

// refusedEverywhere expects that a request is refused in each protocol because there are too many, with a good
// time to try again.
func refusedEverywhere(t *testing.T, x *service, signed string, retry func(after string) bool) {
	t.Helper()
	_, err := x.rewrap(t, signed)
	if refused := (*connect.Error)(nil); !errors.As(err, &refused) || refused.Code() != connect.CodeResourceExhausted || !retry(refused.Meta().Get("Retry-After")) {
		t.Errorf("Connect: found %v", err)
	}
	if _, err := x.rewrapGRPC(t, signed); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("gRPC: found %v", err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, x.URL+plainPath, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	x.credentials(request.Header, plainPath)
	reply, err := x.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	if reply.StatusCode != http.StatusTooManyRequests || !retry(reply.Header.Get("Retry-After")) || reply.Header.Get("WWW-Authenticate") != "" {
		t.Errorf("plain JSON: found %s %v: %s", reply.Status, reply.Header, text)
	}
}

func TestACallerWithTooManyRequestsIsRefusedInEachProtocol(t *testing.T) {
	rates, err := limit.NewRates(limit.Config{Caller: limit.Rate{PerSecond: 0.00001, Burst: 1}})
	if err != nil {
		t.Fatal(err)
	}
	x := start(t, setting{rates: rates})
	client, dataKey, body := parseKey(t, privateKeys()[wrapping.P256]), newDataKey(), policyBody(plainPolicy)
	signed := x.sign(ask(t, client, body, wrap(t, wrapping.P256, dataKey, body)))
	if _, err := x.rewrap(t, signed); err != nil {
		t.Fatal(err)
	}
	refusedEverywhere(t, x, signed, func(after string) bool { return len(after) >= 5 }) // 100,000 seconds, minus the seconds that have passed
	if status, _ := x.get(t, "/kas/v2/kas_public_key"); status != http.StatusOK {
		t.Errorf("public keys: found status %d", status)
	}
}

func TestAServiceWithTooManyRequestsRefusesFurtherOnesInEachProtocol(t *testing.T) {
	shedder, err := limit.NewShedder(limit.Load{InFlight: 1})
	if err != nil {
		t.Fatal(err)
	}
	x := start(t, setting{shedder: shedder})
	client, dataKey, body := parseKey(t, privateKeys()[wrapping.P256]), newDataKey(), policyBody(plainPolicy)
	signed := x.sign(ask(t, client, body, wrap(t, wrapping.P256, dataKey, body)))
	leave, err := shedder.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	refusedEverywhere(t, x, signed, func(after string) bool { return after == "1" })
	leave()
	if _, err := x.rewrap(t, signed); err != nil {
		t.Error(err)
	}
}

// slow is an Authorizer that takes all the time of a request.
type slow struct{}

func (slow) Permits(context.Context, caller.Caller, tdfpolicy.Object) bool { return true }

func (slow) Revision() uint64 { return 0 }

func (slow) Authorize(ctx context.Context, _ caller.Caller, _ tdfpolicy.Object) error {
	if _, limited := ctx.Deadline(); limited {
		<-ctx.Done()
	}
	return nil
}

func TestARequestThatTakesTooLongIsGivenUp(t *testing.T) {
	x := start(t, setting{time: 100 * time.Millisecond, authorizer: slow{}})
	client, dataKey, body := parseKey(t, privateKeys()[wrapping.P256]), newDataKey(), policyBody(plainPolicy)
	object := wrap(t, wrapping.P256, dataKey, body)
	signed := x.sign(ask(t, client, body, object, object, object))
	if _, err := x.rewrap(t, signed); connect.CodeOf(err) != connect.CodeDeadlineExceeded || !strings.Contains(err.Error(), "ask for fewer data keys") {
		t.Errorf("Connect: found %v, expected deadline_exceeded", err)
	}
	if status, text := x.rewrapPlain(t, `{"signedRequestToken":"`+signed+`"}`); status != http.StatusGatewayTimeout {
		t.Errorf("plain JSON: found status %d: %s", status, text)
	}
}

// Nobody needs a token for these requests, and each could take as much memory as a client sends.
func TestTooManySlowRequestsWithoutATokenAreRefused(t *testing.T) {
	const most = 256
	x := start(t, setting{})
	ctx, end := context.WithCancel(t.Context())
	defer end()
	ask := func(body io.Reader) (int, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, x.URL+"/kas.AccessService/PublicKey", body)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		reply, err := x.Client().Do(request)
		if err != nil {
			return 0, err
		}
		defer reply.Body.Close()
		return reply.StatusCode, nil
	}
	answers := make(chan int, 4*most)
	var bodies []*io.PipeWriter
	refused := 0
	for refused == 0 {
		if len(bodies) == cap(answers) {
			t.Fatalf("of %d slow requests, none is refused", len(bodies))
		}
		body, write := io.Pipe()
		bodies = append(bodies, write)
		go func() {
			code, err := ask(body)
			if err != nil {
				t.Errorf("a slow request: %v", err)
			}
			_ = body.Close() // nobody reads it any more
			answers <- code
		}()
		_, _ = write.Write([]byte("{")) // an error shows in the answer; the server may not have read it yet
		select {
		case code := <-answers:
			if refused++; code != http.StatusTooManyRequests {
				t.Fatalf("a slow request has the status %d before it has ended", code)
			}
		default:
		}
	}
	if status, _ := x.get(t, "/kas/v2/kas_public_key"); status != http.StatusOK {
		t.Errorf("a request without a body: found status %d", status)
	}
	for _, body := range bodies {
		_, _ = body.Write([]byte("}")) // an error shows in the answer
		_ = body.Close()
	}
	served := 0
	for range len(bodies) - refused {
		if code := <-answers; code == http.StatusOK {
			served++
		} else if code != http.StatusTooManyRequests {
			t.Errorf("a slow request has the status %d", code)
		}
	}
	if served < most { // more, if some arrive after others have ended
		t.Errorf("%d slow requests are served, expected at least %d", served, most)
	}
	if code, err := ask(strings.NewReader("{}")); err != nil || code != http.StatusOK {
		t.Errorf("afterwards: status %d, %v", code, err)
	}
}

// Otherwise a few strangers could hold all connections that the service may have.
func TestABodyThatDoesNotComeHoldsNoConnectionAfterTheAnswer(t *testing.T) {
	x := start(t, setting{})
	for sentence, line := range map[string]string{
		"no token": "POST " + plainPath, "another path": "POST /", "a public key": "GET /kas/v2/kas_public_key", "a peer that nobody knows": "POST /federation/v1/rewrap",
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			conn, err := tls.Dial("tcp", x.Listener.Addr().String(), x.Client().Transport.(*http.Transport).TLSClientConfig)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }() // the server has closed it
			if _, err := io.WriteString(conn, line+" HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 ") {
				t.Errorf("found %q, %v", text, err)
			}
		})
	}
}
