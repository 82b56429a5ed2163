// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
)

// lateKeys is a key manager that answers only after the deadline of the call, with one of the usual errors.
type lateKeys struct{ says func(context.Context) error }

func (k lateKeys) Key(ctx context.Context, _ keys.Name) (*keys.Key, error) {
	<-ctx.Done()
	return nil, k.says(ctx)
}

func TestACallWhoseTimeIsOverInAKeyManagerIsCalledThat(t *testing.T) {
	never := func() (context.Context, context.CancelFunc) { return context.WithCancel(context.Background()) }
	soon := func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.Background(), time.Millisecond)
	}
	for sentence, test := range map[string]struct {
		context func() (context.Context, context.CancelFunc)
		timeout time.Duration
		giveUp  bool
		says    func(context.Context) error
		code    codes.Code
		want    string
	}{
		"the deadline of the call": {
			context: soon, says: context.Context.Err,
			code: codes.DeadlineExceeded, want: `SignData with profile "P": the key "k" was not found before the deadline of the call`,
		},
		"the timeout of a call of a stream": {
			context: never, timeout: time.Millisecond, says: context.Context.Err,
			code: codes.DeadlineExceeded, want: `SignData with profile "P": the key "k" was not found before the deadline of the call`,
		},
		"a deadline at which the client gave up as well": {
			context: func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				return past{ctx}, cancel
			}, says: context.Context.Err,
			code: codes.DeadlineExceeded, want: `SignData with profile "P": the key "k" was not found before the deadline of the call`,
		},
		"a deadline that the manager takes for its own fault": {
			context: soon, says: func(ctx context.Context) error { return fmt.Errorf("%w: %w", keys.ErrUnavailable, ctx.Err()) },
			code: codes.DeadlineExceeded, want: `SignData with profile "P": the key "k" was not found before the deadline of the call`,
		},
		"a client that gave up": {
			context: never, giveUp: true, says: func(context.Context) error { return errors.New("interrupted") },
			code: codes.Canceled, want: `SignData with profile "P": the call was canceled before it found the key "k"`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := NewHandlers(slog.New(slog.DiscardHandler), telemetry.NewMetrics("test"))
			s.Keys = lateKeys{test.says}
			ctx, cancel := test.context()
			defer cancel()
			if test.giveUp {
				cancel()
			}
			c := &Call{Operation: profile.OpSignData, Context: ctx}
			if test.timeout > 0 {
				c.Deadline = time.Now().Add(test.timeout)
			}
			_, err := s.key(c, "P", anyKey(t), KeySource{ByID: true, ID: "k"})
			if got := status.Convert(err); got.Code() != test.code || got.Message() != test.want {
				t.Errorf("got %s %q\nwant %s %q", got.Code(), got.Message(), test.code, test.want)
			}
		})
	}
}

// noted is a provider without keys that records the requests.
type noted struct{ name *keys.Name }

func (n noted) Key(_ context.Context, name keys.Name) (*keys.Key, error) {
	*n.name = name
	return nil, keys.ErrNotFound
}

func TestAProviderLearnsWhatAKeyIsFor(t *testing.T) {
	var found keys.Name
	s := NewHandlers(slog.New(slog.DiscardHandler), telemetry.NewMetrics("test"))
	s.Keys = noted{&found}
	_, err := s.key(&Call{Operation: profile.OpSignData, Context: t.Context()}, "P", anyKey(t), KeySource{ByID: true, ID: "k"})
	if want := (keys.Name{ID: "k", Use: keys.Use{Profile: "P", Operation: profile.OpSignData}}); status.Code(err) != codes.NotFound || found != want {
		t.Errorf("asked for %v, error %v, want %v", found, err, want)
	}
}

// anyKey is the policy of a profile that lists every key.
func anyKey(t *testing.T) *keyrules.Policy {
	t.Helper()
	set, problems := profile.Compile(profile.FileName, []byte(`[{Name: P, API: {SignData: {SignAlg: ed25519, KeyIds: [{Id: "*"}]}}}]`))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	p, _ := set.Lookup("P")
	return p.Signature().Keys()
}

// past returns a context whose deadline has passed.
type past struct{ context.Context }

func (past) Deadline() (time.Time, bool) { return time.Unix(0, 0), true }
