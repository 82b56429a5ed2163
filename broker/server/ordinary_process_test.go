// SPDX-License-Identifier: Apache-2.0

//go:build process

package server_test

import (
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/crypto-broker/crypto-broker-operator/broker/server"
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
		"large requests that wait for memory": func(t *testing.T, conn *grpc.ClientConn) {
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					if _, err := call(t, conn, methodHashData, hash(large)); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
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
			b := startWith(t, sha256Profile, []string{"a", "b"}, server.WithMemory(16<<20))
			for range 4 { // the first connections may send more in advance than others
				load(t, connect(t, b.socket("a")))
			}
			if got := b.Misuses(); got != 0 {
				t.Errorf("%d misuses of its caller, want none", got)
			}
		})
	}
}
