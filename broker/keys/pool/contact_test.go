// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// reachOf returns the state of the only endpoint.
func reachOf(p *Pool[*wire]) (Reach, Failure) {
	s := p.Status()[0]
	return s.Reach, s.Failure
}

func expectReach(t *testing.T, p *Pool[*wire], when string, reach Reach, failure Failure) {
	t.Helper()
	if r, f := reachOf(p); r != reach || f != failure {
		t.Errorf("%s: reach %d and failure %q, want %d and %q", when, r, f, reach, failure)
	}
}

func TestAPoolThatNobodyUsesKnowsWhetherItsServerAnswers(t *testing.T) {
	m := newManager("a")
	run(t, m, Config[*wire]{Endpoints: []string{"a"}}, func(t *testing.T, p *Pool[*wire]) {
		expectReach(t, p, "at the start", Reachable, "")
		if s := p.Status()[0]; s.Version != "test 1" || s.Latency != time.Millisecond || s.Requests != (Requests{}) {
			t.Errorf("the state is %+v", s)
		}
		m.change("a", func(s *server) { s.down = true })
		<-time.After(2 * time.Minute)
		expectReach(t, p, "while the server is down", Unreachable, BadReply)
		m.change("a", func(s *server) { s.down, s.epoch = false, s.epoch+1 })
		<-time.After(20 * time.Second)
		expectReach(t, p, "when it is back", Reachable, "")
		m.change("a", func(s *server) { s.hangs = true })
		<-time.After(2 * time.Minute)
		expectReach(t, p, "while it hangs", Unreachable, TimedOut)
		if a := m.of("a"); a.requests != 0 || a.pings > 30 {
			t.Errorf("the server had %d requests and %d pings, want none and few", a.requests, a.pings)
		}
	})
}

func TestAPoolThatNobodyUsesEndsThePauseOfAServerThatIsBack(t *testing.T) {
	m := newManager("a")
	run(t, m, Config[*wire]{Endpoints: []string{"a"}}, func(t *testing.T, p *Pool[*wire]) {
		m.change("a", func(s *server) { s.down = true })
		for range tripAfter + 1 {
			_ = ask(p, Repeatable)
		}
		if p.Status()[0].Usable {
			t.Fatal("the endpoint is usable after failures")
		}
		m.change("a", func(s *server) { s.down = false })
		<-time.After(tripTime + 20*time.Second)
		if s := p.Status()[0]; !s.Usable || s.Reach != Reachable {
			t.Errorf("the state of a server that is back is %+v", s)
		}
	})
}

func TestAServerThatDeniesAllRequestsRefusesTheCredentials(t *testing.T) {
	m := newManager("a")
	run(t, m, Config[*wire]{Endpoints: []string{"a"}}, func(t *testing.T, p *Pool[*wire]) {
		denied := func() {
			_ = p.Do(context.Background(), Repeatable, func(context.Context, *wire) error { return keys.ErrDenied })
		}
		denied()
		denied()
		expectReach(t, p, "after two of three", Reachable, "")
		denied()
		expectReach(t, p, "after three", Reachable, CredentialsRefused)
		if err := ask(p, Repeatable); err != nil {
			t.Error(err)
		}
		expectReach(t, p, "after a request that was served", Reachable, "")
		_ = p.Do(context.Background(), Repeatable, func(context.Context, *wire) error { return keys.ErrThrottled })
		_ = p.Do(context.Background(), Repeatable, func(context.Context, *wire) error { return keys.ErrNotFound })
		if r := p.Status()[0].Requests; r.Served != 2 || r.Denied != 3 || r.Throttled != 1 || r.Unavailable != 0 || r.Took != time.Millisecond {
			t.Errorf("counted %+v", r)
		}
	})
}

func TestAFailureIsOneWord(t *testing.T) {
	unavailable := func(err error) error { return fmt.Errorf("%w: connect: %w", keys.ErrUnavailable, err) }
	for sentence, test := range map[string]struct {
		err  error
		want Failure
	}{
		"a name without an address":       {unavailable(&net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}), NameNotFound},
		"a port that nobody listens on":   {unavailable(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), NotConnected},
		"a connection that is closed":     {unavailable(&net.OpError{Op: "read", Err: syscall.ECONNRESET}), BadReply},
		"a host that drops packets":       {unavailable(context.DeadlineExceeded), TimedOut},
		"no answer":                       {fmt.Errorf("%w: x", errTimedOut), TimedOut},
		"an authority that is not known":  {fmt.Errorf("%w: %w", keys.ErrDenied, &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), CertificateNotTrusted},
		"a server that refuses a client":  {fmt.Errorf("%w: %w", keys.ErrDenied, tls.AlertError(42)), CredentialsRefused},
		"a login that is refused":         {keys.ErrDenied, CredentialsRefused},
		"a server that cannot serve now":  {keys.ErrUnavailable, BadReply},
		"an error of an unknown kind":     {errors.New("x"), BadReply},
		"the same behind several layers":  {unavailable(unavailable(tls.AlertError(48))), CredentialsRefused},
		"a time limit that the net knows": {unavailable(&net.OpError{Op: "dial", Err: timeout{}}), TimedOut},
	} {
		if found := failureOf(test.err); found != test.want {
			t.Errorf("%s is %q, want %q", sentence, found, test.want)
		}
	}
}

type timeout struct{}

func (timeout) Error() string   { return "x" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

func TestAConnectionThatIsBrokenIsClosedAndSaysNothingOfTheServer(t *testing.T) {
	m := newManager("a")
	run(t, m, Config[*wire]{Endpoints: []string{"a"}, Min: 1, Max: 1}, func(t *testing.T, p *Pool[*wire]) {
		for range 10 { // more failures than the circuit breaker tolerates
			err := p.Do(t.Context(), Repeatable, func(_ context.Context, w *wire) error {
				w.broken = true
				return keys.ErrNotFound
			})
			if !errors.Is(err, keys.ErrNotFound) {
				t.Fatal(err)
			}
			if err := p.Do(t.Context(), Once, func(ctx context.Context, w *wire) error { return w.request(ctx) }); err != nil {
				t.Fatalf("the next request: %v", err)
			}
		}
		if dialed := m.of("a").dialed; dialed != 11 {
			t.Errorf("connected %d times, want 11", dialed)
		}
	})
}
