// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"bytes"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
)

func TestAWriteWaitsForAClientThatReadsLater(t *testing.T) {
	conn, client := connected(t)
	want := bytes.Repeat([]byte("reply"), 1<<20) // many times the size of the system's buffers
	written := make(chan error, 1)
	go func() {
		n, err := conn.Write(want)
		if err == nil && n != len(want) {
			err = io.ErrShortWrite
		}
		written <- err
	}()
	awaitStack(t, "rawio.(*Writer).Write(")
	got := make([]byte, len(want))
	if _, err := io.ReadFull(client, got); err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil || !bytes.Equal(got, want) {
		t.Errorf("the client read what was written: %t, error %v", bytes.Equal(got, want), err)
	}
}

func TestAWriteThatWaitsEnds(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(conn *Conn, client net.Conn) error
		want error
	}{
		"when the client closes the connection": {func(_ *Conn, client net.Conn) error { return client.Close() }, syscall.EPIPE},
		"when the broker closes the connection": {func(conn *Conn, _ net.Conn) error { return conn.Close() }, net.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			conn, client := connected(t)
			ended := make(chan error, 1)
			go func() {
				awaitStack(t, "rawio.(*Writer).Write(")
				ended <- test.end(conn, client)
			}()
			if n, err := conn.Write(make([]byte, 1<<20)); !errors.Is(err, test.want) || n == 0 || n == 1<<20 {
				t.Errorf("got %d bytes and the error %v, want a part of the bytes and %v", n, err, test.want)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
