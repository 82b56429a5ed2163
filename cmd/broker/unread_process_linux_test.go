// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// pipe returns the end of a pipe for writing, and the function that closes the other end.
func pipe(t *testing.T) (*os.File, func()) {
	t.Helper()
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	reader, writer := os.NewFile(uintptr(ends[0]), "reader"), os.NewFile(uintptr(ends[1]), "writer")
	closed := sync.OnceFunc(func() {
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		closed()
		if err := writer.Close(); err != nil {
			t.Error(err)
		}
	})
	return writer, closed
}

// fullPipe returns a pipe that nobody reads and that has no more room.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	writer, _ := pipe(t)
	const setSize, size = 1031, 4096 // F_SETPIPE_SZ
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, writer.Fd(), setSize, size); errno != 0 {
		t.Fatal(errno)
	}
	if n, err := writer.Write(make([]byte, size)); n != size || err != nil {
		t.Fatalf("wrote %d bytes: %v", n, err)
	}
	return writer
}

// closedPipe returns a pipe whose reader has ended.
func closedPipe(t *testing.T) *os.File {
	t.Helper()
	writer, closeReader := pipe(t)
	closeReader()
	return writer
}

func TestABrokerWhoseLogNobodyReadsTakesProfilesAndEnds(t *testing.T) {
	for sentence, log := range map[string]func(*testing.T) *os.File{"a full pipe": fullPipe, "a pipe whose reader has ended": closedPipe} {
		t.Run(sentence, func(t *testing.T) { testUnread(t, log(t)) })
	}
}

func TestABrokerThatCannotStartEndsAlthoughNobodyReadsItsLog(t *testing.T) {
	at := newPlace(t, "sha-256")
	start(t, at.args()...).listening()
	broker := exec.CommandContext(context.Background(), binary, at.args()...) // the other one has the directory of the sockets
	broker.Env, broker.Stderr = environment(), fullPipe(t)
	if err := broker.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = broker.Wait() // the exit code says more
	}()
	t.Cleanup(func() { _ = broker.Process.Kill() }) // it has ended unless the test failed
	select {
	case <-exited:
		if code := broker.ProcessState.ExitCode(); code != 1 {
			t.Errorf("the code is %d, expected 1", code)
		}
	case <-time.After(waitLimit):
		t.Fatal("the broker does not end")
	}
}

func testUnread(t *testing.T, log *os.File) {
	t.Helper()
	at := newPlace(t, "sha-256")
	broker := exec.CommandContext(context.Background(), binary, at.args()...)
	broker.Env, broker.Stderr = environment(), log
	if err := broker.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- broker.Wait() }()
	t.Cleanup(func() { _ = broker.Process.Kill() }) // it has ended unless the test failed
	conn := connect(t, at.socket(""))
	for _, want := range []string{"sha-256", "sha-384", "sha-512"} {
		at.write("- Name: Default\n  API: {HashData: {HashAlg: " + want + "}}\n")
		got := ""
		for end := time.Now().Add(waitLimit); got != want; <-time.After(10 * time.Millisecond) {
			var err error
			if got, err = hashes(t, conn); err != nil || time.Now().After(end) {
				t.Fatalf("got %q, %v, expected %s", got, err, want)
			}
		}
	}
	if err := broker.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-exited:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(waitLimit):
		t.Fatal("the broker does not end")
	}
}
