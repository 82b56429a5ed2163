// SPDX-License-Identifier: Apache-2.0

package unixsocket_test

import (
	"net"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// socketDir is a directory whose path is short enough for a socket. The path of
// t.TempDir has the test's name in it.
func socketDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "broker")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// dial tries to connect to a socket.
func dial(t testing.TB, socket string) error {
	t.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "unix", socket)
	if err != nil {
		return err
	}
	return conn.Close()
}
