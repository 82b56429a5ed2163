// SPDX-License-Identifier: Apache-2.0

package unixsocket_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
)

func options(dir string, callers ...string) unixsocket.Options {
	return unixsocket.Options{Dir: dir, Callers: callers, Group: -1}
}

func listen(t *testing.T, o unixsocket.Options) *unixsocket.Sockets {
	t.Helper()
	sockets, err := unixsocket.Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sockets.Close(); err != nil {
			t.Error(err)
		}
	})
	return sockets
}

// modes lists what is in a directory with its mode.
func modes(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		found = append(found, fmt.Sprintf("%s %s", info.Mode(), name))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

func TestOnlyTheBrokersUserMayConnectWithoutAGroup(t *testing.T) {
	dir := filepath.Join(socketDir(t), "new")
	listen(t, options(dir, "app", "side"))
	want := []string{
		"drwx------ .", "-rw------- .lock",
		"drwx------ app", "Srw------- app/" + contract.SocketFile,
		"drwx------ side", "Srw------- side/" + contract.SocketFile,
	}
	if diff := cmp.Diff(want, modes(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestTheGroupMayConnectWhereThereIsOne(t *testing.T) {
	// A group that may own files of the test, whichever user runs the test.
	group := os.Getegid()
	if os.Geteuid() == 0 {
		group = 60471
	}
	dir := filepath.Join(socketDir(t), "new")
	o := options(dir, "app")
	o.Group = group
	listen(t, o)
	want := []string{"drwxr-x--- .", "-rw------- .lock", "drwxr-x--- app", "Srw-rw---- app/" + contract.SocketFile}
	if diff := cmp.Diff(want, modes(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for _, path := range []string{dir, filepath.Join(dir, "app"), filepath.Join(dir, "app", contract.SocketFile)} {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := int(info.Sys().(*syscall.Stat_t).Gid); got != group {
			t.Errorf("%s belongs to group %d, want %d", path, got, group)
		}
	}
}

func TestWithoutCallersTheSocketIsInTheDirectoryItself(t *testing.T) {
	dir := socketDir(t)
	sockets := listen(t, options(dir))
	if diff := cmp.Diff([]string{filepath.Join(dir, contract.SocketFile)}, sockets.Paths()); diff != "" {
		t.Errorf("sockets (-want +got):\n%s", diff)
	}
}

func TestADirectoryIsKeptAndOnlyTheSocketInItIsReplaced(t *testing.T) {
	dir := socketDir(t)
	app := filepath.Join(dir, "app")
	first, err := unixsocket.Listen(options(dir, "app"))
	if err != nil {
		t.Fatal(err)
	}
	kept := inode(t, app)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"drwx------ .", "-rw------- .lock", "drwx------ app"}, modes(t, dir)); diff != "" {
		t.Errorf("after the end (-want +got):\n%s", diff)
	}
	leaveBehind(t, filepath.Join(app, contract.SocketFile))
	listen(t, options(dir, "app"))
	if inode(t, app) != kept {
		t.Error("the directory was replaced; a container that has it mounted sees no socket any more")
	}
	if err := dial(t, filepath.Join(app, contract.SocketFile)); err != nil {
		t.Errorf("the socket that was left behind was not replaced: %v", err)
	}
}

// leaveBehind makes a socket that nobody listens on, as a killed broker does.
func leaveBehind(t *testing.T, path string) {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsInTheWayIsNamed(t *testing.T) {
	for sentence, test := range map[string]struct {
		prepare func(t *testing.T, dir string)
		callers []string
		want    string // %s is the directory
	}{
		"a socket that somebody listens on": {
			func(t *testing.T, dir string) {
				other, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, contract.SocketFile)})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = other.Close() })
			}, nil,
			"another process listens on %s/crypto-broker-server.sock: stop it or choose another socket directory",
		},
		"another broker": {
			func(t *testing.T, dir string) { listen(t, options(dir, "app")) }, []string{"side"},
			"lock the socket directory %s: another broker uses the directory: stop that broker or choose another socket directory",
		},
		"a file of the socket's name": {
			func(t *testing.T, dir string) {
				if err := os.WriteFile(filepath.Join(dir, contract.SocketFile), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}, nil,
			"%s/crypto-broker-server.sock exists and is not a socket: remove it or choose another socket directory",
		},
		"a link of the socket's name": {
			func(t *testing.T, dir string) {
				if err := os.Symlink("/nowhere", filepath.Join(dir, contract.SocketFile)); err != nil {
					t.Fatal(err)
				}
			}, nil,
			"%s/crypto-broker-server.sock exists and is not a socket: remove it or choose another socket directory",
		},
		"a file of a caller's name": {
			func(t *testing.T, dir string) {
				if err := os.WriteFile(filepath.Join(dir, "app"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}, []string{"app"},
			"the socket directory %s/app exists and is not a directory: remove it or choose another socket directory",
		},
		"a link to a directory": {
			func(t *testing.T, dir string) { moveBehindALink(t, dir) }, nil,
			"the socket directory %s is a symbolic link, expected a directory: remove the link or choose another socket directory",
		},
		"a link to nothing": {
			func(t *testing.T, dir string) {
				if err := errors.Join(os.Remove(dir), os.Symlink("/nowhere", dir)); err != nil {
					t.Fatal(err)
				}
			}, nil,
			"the socket directory %s is a symbolic link, expected a directory: remove the link or choose another socket directory",
		},
		"a link in the place of a caller's directory": {
			func(t *testing.T, dir string) {
				app := filepath.Join(dir, "app")
				if err := os.Mkdir(app, 0o755); err != nil {
					t.Fatal(err)
				}
				moveBehindALink(t, app)
			}, []string{"app"},
			"the socket directory %s/app is a symbolic link, expected a directory: remove the link or choose another socket directory",
		},
		"a link in the place of the lock": {
			func(t *testing.T, dir string) {
				if err := os.Symlink("/nowhere", filepath.Join(dir, unixsocket.LockName)); err != nil {
					t.Fatal(err)
				}
			}, nil,
			"lock the socket directory %s: open or make its file .lock, a regular file of the broker's user: too many levels of symbolic links",
		},
		"a pipe in the place of the lock": {
			func(t *testing.T, dir string) {
				if err := unix.Mkfifo(filepath.Join(dir, unixsocket.LockName), 0o600); err != nil {
					t.Fatal(err)
				}
			}, nil,
			"lock the socket directory %s: its file .lock is not a regular file: remove it or choose another socket directory",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir := filepath.Join(socketDir(t), "sockets")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			test.prepare(t, dir)
			before := modes(t, dir)
			_, err := unixsocket.Listen(options(dir, test.callers...))
			if want := fmt.Sprintf(test.want, dir); err == nil || err.Error() != want {
				t.Errorf("got %v\nwant %s", err, want)
			}
			for _, file := range before {
				if !slices.Contains(modes(t, dir), file) {
					t.Errorf("%s is gone", file)
				}
			}
		})
	}
}

// moveBehindALink replaces a directory by a symbolic link to it.
func moveBehindALink(t *testing.T, dir string) {
	t.Helper()
	if err := errors.Join(os.Chmod(dir, 0o755), os.Rename(dir, dir+".real"), os.Symlink(dir+".real", dir)); err != nil {
		t.Fatal(err)
	}
}

func TestOptionsThatCannotWorkAreRefusedBeforeAnythingIsMade(t *testing.T) {
	for sentence, test := range map[string]struct {
		dir     string
		callers []string
		want    string
	}{
		"a relative path":         {"sockets", nil, `socket directory "sockets": expected an absolute path`},
		"an empty caller":         {"/nowhere", []string{""}, `caller "": expected the name of a container, at most 63 lower-case letters, digits and inner hyphens`},
		"a caller that goes up":   {"/nowhere", []string{".."}, `caller "..": expected the name of a container, at most 63 lower-case letters, digits and inner hyphens`},
		"a caller with a slash":   {"/nowhere", []string{"a/b"}, `caller "a/b": expected the name of a container, at most 63 lower-case letters, digits and inner hyphens`},
		"a caller in capitals":    {"/nowhere", []string{"App"}, `caller "App": expected the name of a container, at most 63 lower-case letters, digits and inner hyphens`},
		"a caller with a hyphen":  {"/nowhere", []string{"app-"}, `caller "app-": expected the name of a container, at most 63 lower-case letters, digits and inner hyphens`},
		"a caller that is twice":  {"/nowhere", []string{"app", "app"}, `caller "app" is named twice`},
		"a path above the limit":  {"/" + strings.Repeat("d", 81), nil, "the path of the socket /" + strings.Repeat("d", 81) + "/crypto-broker-server.sock has 108 bytes, and the system allows at most 107: choose a shorter socket directory or caller name"},
		"a caller with long name": {"/nowhere", []string{strings.Repeat("c", 64)}, `caller "` + strings.Repeat("c", 64) + `": expected the name of a container, at most 63 lower-case letters, digits and inner hyphens`},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := unixsocket.Listen(options(test.dir, test.callers...))
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
			if _, err := os.Lstat("/nowhere"); err == nil {
				t.Error("the directory was made all the same")
			}
		})
	}
}

func TestAPathAtTheLimitWorks(t *testing.T) {
	base := socketDir(t)
	const longest = 107
	dir := filepath.Join(base, strings.Repeat("d", longest-len(base)-2-len(contract.SocketFile)))
	sockets := listen(t, options(dir))
	path := sockets.Paths()[0]
	if len(path) != longest {
		t.Fatalf("the path has %d bytes, want %d", len(path), longest)
	}
	if err := dial(t, path); err != nil {
		t.Error(err)
	}
}

func TestASocketThatIsNotOursAnyMoreIsLeftAtTheEnd(t *testing.T) {
	dir := socketDir(t)
	path := filepath.Join(dir, contract.SocketFile)
	sockets, err := unixsocket.Listen(options(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	leaveBehind(t, path)
	if err := sockets.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the other socket was removed: %v", err)
	}
}

func TestNothingIsLeftBehindWhenOneSocketOfManyFails(t *testing.T) {
	dir := socketDir(t)
	if err := os.WriteFile(filepath.Join(dir, "side"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := unixsocket.Listen(options(dir, "app", "side")); err == nil {
		t.Fatal("listens although the second directory cannot be made")
	}
	if diff := cmp.Diff([]string{"drwx------ .", "-rw------- .lock", "drwx------ app", "-rw------- side"}, modes(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if err := os.Remove(filepath.Join(dir, "side")); err != nil {
		t.Fatal(err)
	}
	listen(t, options(dir, "app", "side")) // the directory is not locked either
}
