// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/work"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
)

// limitTime is far above what anything here takes; only a failure reaches it.
const limitTime = time.Minute

// named is the name of a method.
type named string

func (n named) String() string { return string(n) }

// callerOfTest has a share of its own.
func callerOfTest(connections, calls, memory int64) *Caller {
	return NewCaller("a", Share{connections: connections, calls: calls, streams: calls, memory: memory}, &work.Processors{})
}

// connOfTest is a connection of a caller.
func connOfTest(t *testing.T, from *Caller) *Conn {
	t.Helper()
	conn, _ := pairOfTest(t, from)
	return conn
}

// pairOfTest does the same and returns the client's end, too.
func pairOfTest(t *testing.T, from *Caller) (*Conn, net.Conn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	var config net.ListenConfig
	listening, err := config.Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var dialer net.Dialer
	client, err := dialer.DialContext(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := listening.(*net.UnixListener).AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	made := newConn(conn, from, unixsocket.Identity{})
	t.Cleanup(func() {
		_ = made.Close() // most tests do so
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		if err := listening.Close(); err != nil {
			t.Error(err)
		}
	})
	return made, client
}

func enterOfTest(t *testing.T, conn *Conn) *Slot {
	t.Helper()
	p, err := conn.Enter(named("M"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func encodeOfTest(p *Slot, reply proto.Message) error {
	return p.Encode(named("M"), reply, proto.Size(reply), nil)
}

// checkNothingTaken checks that a caller has its whole share again.
func checkNothingTaken(t *testing.T, c *Caller) {
	t.Helper()
	if calls, streams := c.calls.Load(), c.streams.Load(); calls != 0 || streams != 0 {
		t.Errorf("%d calls and %d streams are taken, want none", calls, streams)
	}
	if !c.messages.TryAcquire(c.memory) {
		t.Error("memory of messages is taken, want none")
		return
	}
	c.messages.Release(c.memory)
	if !c.transfers.TryAcquire(c.maxTransfers) {
		t.Error("a message is transferred, want none")
		return
	}
	c.transfers.Release(c.maxTransfers)
}

func closed(conn *Conn) bool {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	return conn.closed
}

func TestSharesOfCallersAreEqualAndTogetherNoMoreThanThereIs(t *testing.T) {
	const many = 1 << 30
	for sentence, test := range map[string]struct {
		memory         int64
		maxConnections int
		callers        int
		want           Share
	}{
		"one caller":                         {32 << 20, many, 1, Share{1024, 1024, 256, 32 << 20}},
		"two callers":                        {32 << 20, many, 2, Share{512, 512, 128, 16 << 20}},
		"fewer descriptors than connections": {32 << 20, 100, 2, Share{50, 512, 128, 16 << 20}},
		"messages of one call at least":      {32 << 20, many, 16, Share{64, 64, 16, minMemory}},
		"something for each":                 {1, 1, 3, Share{1, 1, 1, 1}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := ShareOf(test.memory, test.maxConnections, test.callers); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestTheConnectionThatIsIdleForLongestGivesWay(t *testing.T) {
	c := callerOfTest(3, 10, 1<<20)
	var conns []*Conn
	for range 3 {
		conn := connOfTest(t, c)
		if !c.admit(conn) {
			t.Fatal("there is room")
		}
		conns = append(conns, conn)
	}
	now := time.Now()
	conns[0].quiet, conns[1].quiet, conns[2].quiet = now.Add(-3*time.Hour), now.Add(-time.Hour), now.Add(-2*time.Hour)
	busy := enterOfTest(t, conns[0])
	next := connOfTest(t, c)
	if !c.admit(next) {
		t.Error("a connection is refused beside idle ones")
	}
	for i, want := range []bool{false, false, true} {
		if closed(conns[i]) != want {
			t.Errorf("connection %d: closed is %t, want %t", i, !want, want)
		}
	}
	others := []*Slot{enterOfTest(t, conns[1]), enterOfTest(t, next)}
	if c.admit(connOfTest(t, c)) {
		t.Error("a connection is let in beside three that have calls")
	}
	busy.End()
	if !c.admit(connOfTest(t, c)) || !closed(conns[0]) {
		t.Error("the only idle connection did not give way")
	}
	for _, p := range others {
		p.End()
	}
	checkNothingTaken(t, c)
}

func TestCallsBeyondTheShareAreRefusedWithASentence(t *testing.T) {
	c := callerOfTest(1, 2, 1<<20)
	conn := connOfTest(t, c)
	first, second := enterOfTest(t, conn), enterOfTest(t, conn)
	_, err := conn.Enter(named("M"))
	const want = `M: the container "a" may have at most 2 calls at one time, try again later`
	if got := status.Convert(err); got.Code() != codes.ResourceExhausted || got.Message() != want {
		t.Errorf("got %s %q, want %q", got.Code(), got.Message(), want)
	}
	first.End()
	enterOfTest(t, conn).End()
	second.End()
	checkNothingTaken(t, c)
}

func TestMessagesGetMemoryInTheOrderInWhichTheyCame(t *testing.T) {
	const memory = 64 << 10
	c := callerOfTest(1, 10, memory)
	conn := connOfTest(t, c)
	first := enterOfTest(t, conn)
	if err := first.TakeMemory(t.Context(), named("M"), memory/2, limitTime); err != nil {
		t.Fatal(err)
	}
	const large, small = memory / 2, SmallMessage + 1
	waiting, granted := enterOfTest(t, conn), make(chan error, 1)
	go func() { granted <- waiting.TakeMemory(t.Context(), named("M"), large, limitTime) }()
	awaitGoroutines(t, "Slot).TakeMemory(")
	before := enterOfTest(t, conn)
	if err := before.TakeMemory(t.Context(), named("M"), SmallMessage, limitTime); err != nil {
		t.Errorf("a small message: %v", err)
	}
	before.End()
	first.keepMemory(memory - 4*small)
	if c.messages.TryAcquire(2 * small) {
		t.Error("a later message got memory before an earlier one")
		c.messages.Release(2 * small)
	}
	first.End()
	if err := <-granted; err != nil {
		t.Error(err)
	}
	waiting.End()
	checkNothingTaken(t, c)
}

func TestAMessageDoesNotWaitForEver(t *testing.T) {
	const memory = 64 << 10
	for sentence, test := range map[string]struct {
		patience time.Duration
		ctx      func(context.Context) (context.Context, context.CancelFunc)
		code     codes.Code
		want     string
	}{
		"while others keep the memory": {
			10 * time.Millisecond, context.WithCancel, codes.ResourceExhausted,
			`M: no memory for the message within 10ms: other messages use the 65536 bytes of the container "a", try again later`,
		},
		"beyond its deadline": {
			limitTime, func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, 10*time.Millisecond)
			}, codes.DeadlineExceeded,
			`M: no memory for the message before the deadline of the call: other messages use the 65536 bytes of the container "a"`,
		},
		"once its call is given up": {
			limitTime, func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				return ctx, cancel
			}, codes.Canceled, "context canceled",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := callerOfTest(1, 10, memory)
			conn := connOfTest(t, c)
			first, second := enterOfTest(t, conn), enterOfTest(t, conn)
			if err := first.TakeMemory(t.Context(), named("M"), memory, limitTime); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := test.ctx(t.Context())
			defer cancel()
			err := second.TakeMemory(ctx, named("M"), memory, test.patience)
			if got := status.Convert(err); got.Code() != test.code || got.Message() != test.want {
				t.Errorf("got %s %q, want %s %q", got.Code(), got.Message(), test.code, test.want)
			}
			second.End()
			first.End()
			checkNothingTaken(t, c)
		})
	}
}
