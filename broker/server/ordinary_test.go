// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc"
)

func TestOrdinaryLoadsAreReadAtFullSpeed(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	hash := func(input string) message { return message{}.text(requestProfile, "P").text(requestInput, input) }
	stream := func(chunks, size int) func(*testing.T, *grpc.ClientConn) {
		return func(t *testing.T, conn *grpc.ClientConn) {
			messages := []message{startOf(message{}.text(requestProfile, "P"))}
			for range chunks {
				messages = append(messages, chunk(large[:size]))
			}
			if _, err := hashStream(t, conn, messages...); err != nil {
				t.Error(err)
			}
		}
	}
	for name, load := range map[string]func(*testing.T, *grpc.ClientConn){
		"large requests": func(t *testing.T, conn *grpc.ClientConn) {
			for range 20 {
				ask(t, conn, methodHashData, hash(large))
			}
		},
		"small requests": func(t *testing.T, conn *grpc.ClientConn) {
			for range 2000 {
				ask(t, conn, methodHashData, hash("abc"))
			}
		},
		"a stream of large chunks": stream(32, 1<<20),
		"a stream of small chunks": stream(20_000, 10),
		"an Exchange of many calls": func(t *testing.T, conn *grpc.ClientConn) {
			x := exchange(t, conn)
			for id := range uint64(1000) {
				x.send(hashCall(id+1, "P", large[:2000]))
				x.take(1)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, sha256Profile, "a", "b")
			for range 4 { // the first connections may send more in advance than others
				load(t, connect(t, b.socket("a")))
			}
			if got := b.sockets.Strains(); got != 0 {
				t.Errorf("its caller was strained %d times, want never", got)
			}
		})
	}
}
