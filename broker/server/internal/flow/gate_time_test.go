// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
)

func TestConnectionsWaitInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const connections = 50
		g := newGate(1)
		first := new(Turn)
		if !g.tryEnter(first) {
			t.Fatal("the first connection did not get a turn")
		}
		var order []int // one after the other
		for n := range connections {
			go func() {
				turn := new(Turn)
				g.enter(turn)
				order = append(order, n)
				<-time.After(gateTime / 2)
				g.release(turn)
			}()
			synctest.Wait()
		}
		g.release(first)
		<-time.After(connections * gateTime)
		synctest.Wait()
		if len(order) != connections || !slices.IsSorted(order) {
			t.Errorf("turns were taken in the order %v, want the order of %d connections", order, connections)
		}
	})
}

func TestATurnThatLastsASecondGoesToTheNextOneAndNotToAllThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiting = 50
		g := newGate(1)
		first := new(Turn)
		g.tryEnter(first)
		entered := make(chan *Turn, waiting)
		for range waiting {
			go func() {
				turn := new(Turn)
				g.enter(turn)
				entered <- turn
			}()
		}
		began := time.Now()
		second := <-entered
		if took := time.Since(began); took < longestTurn || took > longestTurn+gateTime {
			t.Errorf("the next one waited %s, want %s", took, longestTurn)
		}
		<-time.After(gateTime)
		g.release(first) // it has lost its turn, so no other one gets a turn
		synctest.Wait()
		if len(entered) > 0 {
			t.Fatalf("%d more have a turn, although there is only one", len(entered))
		}
		g.release(second)
		for range waiting - 1 {
			g.release(<-entered)
		}
		if took := time.Since(began); took > longestTurn+2*gateTime {
			t.Errorf("the last one waited %s, want no longer than the second", took)
		}
	})
}

func TestACallerIsNotReadWhileItHasAQuarterOfItsCalls(t *testing.T) {
	// leaving begins to end a turn of a caller with so many of 200 calls.
	leaving := func(calls, arriving int64) (*Caller, chan struct{}) {
		c := callerOfTest(1, 200, 1<<20)
		c.gate = newGate(1)
		turn := new(Turn)
		c.gate.tryEnter(turn)
		c.begun.Store(pauseCalls)
		c.calls.Store(calls)
		c.arriving.Store(arriving)
		left := make(chan struct{})
		go func() {
			defer close(left)
			c.endTurn(turn)
		}()
		return c, left
	}
	for sentence, test := range map[string]struct {
		calls, arriving int64
	}{
		"calls that have their slots":          {calls: 53},
		"calls of which the headers were read": {arriving: 53},
		"some with slots and some without":     {calls: 30, arriving: 23},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, left := leaving(test.calls, test.arriving)
				for range 2 { // each time one ends it waits again
					<-time.After(maxPauses * pauseTime * 3 / 4)
					synctest.Wait()
					if c.gate.tryEnter(new(Turn)) {
						t.Fatal("another connection is read")
					}
					if test.calls > 0 {
						c.calls.Add(-1)
					} else {
						c.arriving.Add(-1)
					}
				}
				c.calls.Store(50)
				c.arriving.Store(0)
				began := time.Now()
				<-left
				if took := time.Since(began); took > pauseTime {
					t.Errorf("the turn ended %s after the calls, want %s", took, pauseTime)
				}
			})
		})
	}
	t.Run("but where none of them ends, since they may wait for their clients", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, left := leaving(53, 0)
			began := time.Now()
			<-left
			if took, want := time.Since(began), (maxPauses+1)*pauseTime; took != want {
				t.Errorf("the turn ended after %s, want %s", took, want)
			}
			if !c.gate.tryEnter(new(Turn)) {
				t.Error("no other connection is read")
			}
		})
	})
	t.Run("but for a tenth of a second at most, where they end slowly", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, left := leaving(53, 0)
			began := time.Now()
			go func() {
				for {
					select {
					case <-left:
						return
					case <-time.After(maxPauses / 2 * pauseTime):
						c.calls.Add(1) // one that ends and two that begin
					}
				}
			}()
			<-left
			if took, want := time.Since(began), longestPause*pauseTime; took != want {
				t.Errorf("the turn ended after %s, want %s", took, want)
			}
		})
	})
	t.Run("and calls that never take a slot are forgotten", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, left := leaving(0, 53)
			<-left
			if c.busy() {
				t.Error("the caller is still taken for busy")
			}
			c.arrived() // one of them did come
			if got := c.arriving.Load(); got != 0 {
				t.Errorf("%d calls are expected, want 0", got)
			}
		})
	})
	t.Run("and streams do not count, since their clients decide how long they last", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, left := leaving(53, 0)
			c.streams.Store(3)
			began := time.Now()
			<-left
			if took := time.Since(began); took > pauseTime {
				t.Errorf("the turn ended after %s, want %s at most", took, pauseTime)
			}
		})
	})
	t.Run("and one with fewer calls is read at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, left := leaving(30, 20)
			began := time.Now()
			<-left
			if took := time.Since(began); took != 0 {
				t.Errorf("the turn ended after %s, want at once", took)
			}
		})
	})
}

func TestACallCountsFromItsHeadersOn(t *testing.T) {
	c := callerOfTest(1, 10, 1<<20)
	path := filepath.Join(t.TempDir(), "s")
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	type counts struct{ arriving, calls int64 }
	var before, after counts
	server := grpc.NewServer(grpc.Creds(Credentials{}), grpc.InTapHandle(NoteCall), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		before = counts{c.arriving.Load(), c.Calls()}
		slot, err := ConnOf(stream.Context()).Enter(named("Call"))
		if err != nil {
			return err
		}
		defer slot.End()
		after = counts{c.arriving.Load(), c.Calls()}
		return status.Error(codes.Aborted, "counted")
	}))
	served := make(chan error, 1)
	go func() { served <- server.Serve(&wrapped{listener, c}) }()
	client, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limitTime)
	defer cancel()
	if err := client.Invoke(ctx, "/a/b", new(emptypb.Empty), new(emptypb.Empty)); status.Code(err) != codes.Aborted {
		t.Error(err)
	}
	if want := (counts{arriving: 1}); before != want {
		t.Errorf("before the call has a slot: %+v, want %+v", before, want)
	}
	if want := (counts{calls: 1}); after != want {
		t.Errorf("with its slot: %+v, want %+v", after, want)
	}
	if got := c.begun.Load(); got != 1 {
		t.Errorf("%d calls began, want 1", got)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	server.Stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// wrapped is a listener whose connections belong to a caller.
type wrapped struct {
	net.Listener
	from *Caller
}

func (w *wrapped) Accept() (net.Conn, error) {
	conn, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(conn.(*net.UnixConn), w.from, unixsocket.Identity{}), nil
}
