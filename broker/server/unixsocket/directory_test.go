// SPDX-License-Identifier: Apache-2.0

package unixsocket_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
)

// The target of a link keeps its mode, whichever user owns it.
func TestTheTargetOfALinkIsNeitherUsedNorChanged(t *testing.T) {
	parent := socketDir(t)
	dir := filepath.Join(parent, "sockets")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	moveBehindALink(t, dir)
	if _, err := unixsocket.Listen(options(dir)); err == nil {
		t.Fatal("listens behind a link")
	}
	if diff := cmp.Diff([]string{"drwxr-xr-x ."}, modes(t, dir+".real")); diff != "" {
		t.Errorf("behind the link (-want +got):\n%s", diff)
	}
}

func TestALinkAboveTheDirectoryIsTheSystemsOwn(t *testing.T) {
	parent := filepath.Join(socketDir(t), "run")
	if err := os.Mkdir(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	moveBehindALink(t, parent)
	sockets := listen(t, options(filepath.Join(parent, "sockets"), "app"))
	if err := dial(t, sockets.Paths()[0]); err != nil {
		t.Error(err)
	}
}

func TestADirectoryOfAnotherUserIsRefusedAndLeftAsItIs(t *testing.T) {
	owner := os.Geteuid()
	if owner == 0 {
		owner = 1001 // only root can change the owner of a directory
	}
	for sentence, test := range map[string]struct {
		theirs  string
		callers []string
	}{
		"the directory itself": {".", nil},
		"one of a caller":      {"app", []string{"app"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir := filepath.Join(socketDir(t), "sockets")
			theirs := filepath.Join(dir, test.theirs)
			if err := errors.Join(os.MkdirAll(theirs, 0o777), os.Chmod(theirs, 0o777), os.Chown(theirs, owner, -1)); err != nil {
				t.Fatal(err)
			}
			sockets, err := unixsocket.Listen(options(dir, test.callers...))
			if owner == os.Geteuid() {
				if err := errors.Join(err, sockets.Close()); err != nil {
					t.Error(err)
				}
				return
			}
			want := fmt.Sprintf("the socket directory %s belongs to the user 1001, who could replace the sockets in it, expected the broker's own user 0 or root: remove it, change its owner, or choose another socket directory", theirs)
			if err == nil || err.Error() != want {
				t.Errorf("got %v\nwant %s", err, want)
			}
			if found := modes(t, theirs); found[0] != "drwxrwxrwx ." {
				t.Errorf("the directory is %s now", found[0])
			}
		})
	}
}

// Members of the group may enter the directory, so they could lock it.
func TestNobodyElseKeepsABrokerFromStartingByALockOfTheDirectory(t *testing.T) {
	dir := socketDir(t)
	other, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	listen(t, options(dir))
	info, err := os.Lstat(filepath.Join(dir, unixsocket.LockName))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the lock is %v, %v; others can open it", info, err)
	}
}
