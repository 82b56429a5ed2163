// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"os"
	"testing"

	"google.golang.org/grpc/peer"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
)

func TestToJudgeACallerTakesNoMemory(t *testing.T) {
	dir, err := os.MkdirTemp("", "broker") // a directory whose path is short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	sockets, err := unixsocket.Listen(unixsocket.Options{Dir: dir, Callers: []string{"app"}, Profiles: map[string][]string{"app": {"A", "B"}}, Group: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sockets.Close(); err != nil {
			t.Error(err)
		}
	}()
	conn := &Conn{Identity: sockets.Listeners()[0].Identity()}
	ctx := peer.NewContext(context.Background(), &peer.Peer{AuthInfo: authInfo{conn: conn}})
	allocations := testing.AllocsPerRun(100, func() {
		if conn := ConnOf(ctx); !conn.MayUse("B") || conn.MayUse("C") {
			t.Error("another verdict than the options say")
		}
	})
	if allocations != 0 {
		t.Errorf("%v allocations, expected none", allocations)
	}
}
