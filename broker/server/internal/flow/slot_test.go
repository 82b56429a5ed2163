// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/buffers"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// awaitGoroutines waits until a goroutine that the test started is blocked in the
// named function.
func awaitGoroutines(t *testing.T, name string) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	for deadline := time.Now().Add(limitTime); time.Now().Before(deadline); runtime.Gosched() {
		for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			if strings.Contains(stack, name) && strings.Contains(stack, "[select") {
				return
			}
		}
	}
	t.Fatalf("no goroutine waits in %s", name)
}

func TestAReplyThatNeedsMoreThanItsRequestGetsItOrIsRefused(t *testing.T) {
	const memory = 64 << 10
	c := callerOfTest(1, 10, memory)
	conn := connOfTest(t, c)
	reply := wrapperspb.Bytes(make([]byte, memory/2))
	first := enterOfTest(t, conn)
	if err := encodeOfTest(first, reply); err != nil {
		t.Errorf("there is room: %v", err)
	}
	other := enterOfTest(t, conn)
	if !other.takeMore(memory/2 - 64) { // the reply has a few bytes in addition to its content
		t.Error("there is room for half of the memory")
	}
	second := enterOfTest(t, conn)
	const want = `M: no memory for the reply of 32772 bytes: other messages use the 65536 bytes of the container "a", try again later`
	if got := status.Convert(encodeOfTest(second, reply)); got.Code() != codes.ResourceExhausted || got.Message() != want {
		t.Errorf("got %s %q, want %q", got.Code(), got.Message(), want)
	}
	if err := encodeOfTest(second, wrapperspb.Bytes(make([]byte, SmallMessage-8))); err != nil {
		t.Errorf("a small reply needs no room: %v", err)
	}
	for _, p := range []*Slot{first, other, second} {
		p.End()
	}
	checkNothingTaken(t, c)
}

func TestAReplyKeepsNoMoreMemoryThanItHasBytes(t *testing.T) {
	const memory = 64 << 10
	c := callerOfTest(1, 10, memory)
	p := enterOfTest(t, connOfTest(t, c))
	for _, test := range []struct{ request, reply int }{{memory / 2, 16 << 10}, {memory / 2, SmallMessage}, {16 << 10, 32 << 10}} {
		if err := p.TakeMemory(t.Context(), named("M"), test.request, limitTime); err != nil {
			t.Fatal(err)
		}
		reply := wrapperspb.Bytes(make([]byte, test.reply))
		reply.Value = reply.Value[:2*test.reply-proto.Size(reply)] // minus the overhead of its field
		if err := encodeOfTest(p, reply); err != nil {
			t.Fatal(err)
		}
		want := proto.Size(reply)
		if want <= SmallMessage {
			want = 0
		}
		if p.memory != int64(want) {
			t.Errorf("a request of %d bytes and a reply of %d keep %d, want %d", test.request, test.reply, p.memory, want)
		}
		buffers.Pool.Put(p.reply)
		p.ReleaseMemory()
	}
	p.End()
	checkNothingTaken(t, c)
}

// A slot returns to a pool for the next call. If it were returned twice, or after another call got it, the counts would be wrong.
func TestSlotsAreGivenBackOnceHoweverConnectionsAndRepliesEnd(t *testing.T) {
	const rounds, calls, memory = 300, 16, 1 << 20
	c := callerOfTest(rounds, calls, memory)
	for round := range rounds {
		conn := connOfTest(t, c)
		if !c.admit(conn) {
			t.Fatal("there is room")
		}
		var all sync.WaitGroup
		for i := range calls {
			p, err := conn.Enter(named("M"))
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			all.Go(func() {
				p.awaitClient(time.Now())
				if err := p.TakeMemory(t.Context(), named("M"), SmallMessage+1+i, limitTime); err != nil {
					t.Error(err)
				}
				p.clientDone()
				if i%4 == 0 { // an error
					p.End()
					return
				}
				if err := encodeOfTest(p, wrapperspb.Bytes(make([]byte, SmallMessage+i))); err != nil {
					t.Error(err)
					p.End()
					return
				}
				slice := p.wireMessage()
				if i%4 == 1 { // gRPC does not release it
					return
				}
				slice.Free()
			})
		}
		all.Go(func() {
			for range round % 7 {
				runtime.Gosched()
			}
			_ = conn.Close()
		})
		all.Wait()
		checkNothingTaken(t, c)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}

func TestAConnectionIsLateOnceItsOldestSlotIs(t *testing.T) {
	const patience = time.Minute
	c := callerOfTest(1, 100, 1<<20)
	conn := connOfTest(t, c)
	random := rand.New(rand.NewPCG(1, 2))
	begin := time.Now()
	now := begin
	var waiting []*Slot
	var all []*Slot
	for range 100 {
		all = append(all, enterOfTest(t, conn))
	}
	for range 5000 {
		p := all[random.IntN(len(all))]
		now = now.Add(time.Second)
		if i := slices.Index(waiting, p); i >= 0 {
			p.clientDone()
			waiting = slices.Delete(waiting, i, i+1)
		} else {
			p.awaitClient(now)
			waiting = append(waiting, p)
		}
		want := len(waiting) > 0 && now.Sub(waiting[0].since) > patience
		if got := conn.overdue(now, patience); got != want {
			t.Fatalf("late is %t with %d slots that wait, want %t", got, len(waiting), want)
		}
	}
	for _, p := range all {
		p.End()
	}
	if conn.overdue(now.Add(24*time.Hour), patience) {
		t.Error("a connection without calls is late")
	}
	checkNothingTaken(t, c)
}

func TestAConnectionThatIsClosedIsForgotten(t *testing.T) {
	c := callerOfTest(1, 1, 1<<20)
	conn := connOfTest(t, c)
	if !c.admit(conn) {
		t.Fatal("there is room")
	}
	p := enterOfTest(t, conn)
	p.awaitClient(time.Now().Add(-time.Hour))
	if late := c.overdue(time.Now(), time.Minute); len(late) != 1 {
		t.Errorf("%d connections are late, want one", len(late))
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if late := c.overdue(time.Now(), time.Minute); len(late) != 0 {
		t.Errorf("%d connections are late after they were closed", len(late))
	}
	if !c.admit(connOfTest(t, c)) {
		t.Error("a connection that is closed keeps its room")
	}
	p.End() // the handler releases it when it notices the end
	checkNothingTaken(t, c)
}
