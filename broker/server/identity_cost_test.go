// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"testing"

	"google.golang.org/grpc/peer"
)

func TestToJudgeACallerTakesNoMemory(t *testing.T) {
	options := SocketOptions{Profiles: map[string][]string{"app": {"A", "B"}}}
	conn := &callerConn{caller: &caller{name: "app"}, identity: options.identity("app")}
	ctx := peer.NewContext(context.Background(), &peer.Peer{AuthInfo: callerInfo{conn: conn}})
	allocations := testing.AllocsPerRun(100, func() {
		if conn := connOf(ctx); !conn.mayUse("B") || conn.mayUse("C") {
			t.Error("another verdict than the options say")
		}
	})
	if allocations != 0 {
		t.Errorf("%v allocations, expected none", allocations)
	}
}
