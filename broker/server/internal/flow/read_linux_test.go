// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"bytes"
	"errors"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/work"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
)

// countingPool counts the buffers that are not put back.
type countingPool struct {
	mem.BufferPool
	out int
}

func (p *countingPool) Get(size int) *[]byte {
	p.out++
	return p.BufferPool.Get(size)
}

func (p *countingPool) Put(buffer *[]byte) {
	p.out--
	p.BufferPool.Put(buffer)
}

// connected returns both ends of a connection.
func connected(t *testing.T) (*Conn, net.Conn) {
	t.Helper()
	return connectedWith(t, &work.Processors{})
}

// connectedWith returns both ends of a connection to a process with these processors.
func connectedWith(t *testing.T, processors *work.Processors) (*Conn, net.Conn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	var config net.ListenConfig
	unix, err := config.Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l := NewListener(&unixsocket.Listener{UnixListener: unix.(*net.UnixListener)}, NewCaller("", ShareOf(128<<20, 1, 1), processors))
	var dialer net.Dialer
	client, err := dialer.DialContext(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, end := range []io.Closer{l, client, conn} {
			if err := end.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		}
	})
	if _, _, err := (Credentials{}).ServerHandshake(conn); err != nil {
		t.Fatal(err)
	}
	return conn.(*Conn), client
}

func TestAReadTakesABufferOnlyOnceThereIsSomethingToRead(t *testing.T) {
	conn, client := connected(t)
	pool := &countingPool{BufferPool: mem.DefaultBufferPool()}
	want := []byte("something")
	for range 3 {
		go func() {
			awaitStack(t, "waitRead")
			_, _ = client.Write(want) // the read fails if this does
		}()
		buffer, n, err := conn.ReadOnReady(1<<10, pool)
		if err != nil {
			t.Fatal(err)
		}
		if got := (*buffer)[:n]; !bytes.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if pool.out != 1 {
			t.Errorf("%d buffers are out after a read, want 1", pool.out)
		}
		pool.Put(buffer)
	}
}

func TestAConnectionThatAlwaysHasSomethingToReadNeedsAllProcessors(t *testing.T) {
	for sentence, test := range map[string]struct {
		reads int
		quiet bool
	}{"a few reads in a row do not": {quietReads - 1, true}, "more reads do": {quietReads, false}} {
		t.Run(sentence, func(t *testing.T) {
			// UseAll uses as many processors as the environment allows, which may be one.
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
			pool := work.NewPool()
			pool.Adapt()
			conn, client := connectedWith(t, &pool.Processors)
			pool.NoteQuickCall(1, time.Now())
			if !pool.Processors.Quiet() {
				t.Fatal("one quick call does not make the process use one processor")
			}
			const size = 100
			if _, err := client.Write(make([]byte, test.reads*size)); err != nil {
				t.Fatal(err)
			}
			for range test.reads {
				buffer, _, err := conn.ReadOnReady(size, mem.DefaultBufferPool())
				if err != nil {
					t.Fatal(err)
				}
				mem.DefaultBufferPool().Put(buffer)
			}
			if got := pool.Processors.Quiet(); got != test.quiet {
				t.Errorf("the process uses one processor: %t, want %t", got, test.quiet)
			}
			pool.Processors.UseAll()
		})
	}
}

func TestAReadEndsWithoutABuffer(t *testing.T) {
	tests := map[string]struct {
		end  func(conn *Conn, client net.Conn) error
		want error
	}{
		"when the client closes the connection": {func(_ *Conn, client net.Conn) error { return client.Close() }, io.EOF},
		"when the broker closes the connection": {func(conn *Conn, _ net.Conn) error { return conn.Close() }, net.ErrClosed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			conn, client := connected(t)
			pool := &countingPool{BufferPool: mem.DefaultBufferPool()}
			ended := make(chan error, 1)
			go func() {
				awaitStack(t, "waitRead")
				ended <- test.end(conn, client)
			}()
			buffer, n, err := conn.ReadOnReady(1<<10, pool)
			if !errors.Is(err, test.want) || buffer != nil || n != 0 {
				t.Errorf("got %d bytes, a buffer: %t, error %v; want nothing and %v", n, buffer != nil, err, test.want)
			}
			if pool.out != 0 {
				t.Errorf("%d buffers are out, want none", pool.out)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// gRPC does not guarantee that it uses the method. Without this test, a version that does not use it would silently take more memory.
func TestTheServerOfGRPCReadsByReadOnReady(t *testing.T) {
	conn, client := connected(t)
	server := grpc.NewServer(grpc.Creds(Credentials{}))
	served := make(chan error, 1)
	go func() { served <- server.Serve(&oneConn{conn: conn, closed: make(chan struct{})}) }()
	preface := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 0, 0, 0, 4, 0, 0, 0, 0, 0) // RFC 9113, section 3.4, and empty settings
	if _, err := client.Write(preface); err != nil {
		t.Fatal(err)
	}
	awaitStack(t, "Conn).ReadOnReady")
	server.Stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// oneConn is a listener that one connection comes in on.
type oneConn struct {
	conn   net.Conn
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if conn := l.conn; conn != nil {
		l.conn = nil
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	close(l.closed)
	return nil
}

func (*oneConn) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }

// awaitStack waits until a goroutine reads or writes a connection and is in the named function.
func awaitStack(t *testing.T, name string) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			if (strings.Contains(stack, "ReadOnReady(") || strings.Contains(stack, "waitWrite(")) && strings.Contains(stack, name) {
				return
			}
		}
	}
	t.Errorf("no goroutine got to %s", name)
}
