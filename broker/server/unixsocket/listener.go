// SPDX-License-Identifier: Apache-2.0

package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/internal/owneddir"
)

// Listener is the socket of one caller.
type Listener struct {
	*net.UnixListener
	path string
	who  Identity
	made os.FileInfo // the socket file that this listener made
}

// Path returns the path of the socket.
func (l *Listener) Path() string { return l.path }

// Gone reports whether clients cannot find the socket any more, because its file or a directory above it was
// removed, moved or replaced. The socket then serves only the connections that it has.
func (l *Listener) Gone() bool {
	now, err := os.Lstat(l.path)
	return err != nil || !os.SameFile(l.made, now)
}

// Identity returns the identity of the caller of the socket.
func (l *Listener) Identity() Identity { return l.who }

// bind makes the socket in a directory.
func (o *Options) bind(dir *owneddir.Dir, caller string) (*Listener, error) {
	path := filepath.Join(dir.Path, contract.SocketFile)
	if err := removeStale(dir, path); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: private}
	made, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("make the socket %s: %w", path, err)
	}
	socket := made.(*net.UnixListener)
	socket.SetUnlinkOnClose(false) // Go would remove the file even if another broker made it
	l := &Listener{UnixListener: socket, path: path, who: o.identity(caller)}
	if l.made, err = socketFile(dir, path); err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	err = o.grant(path, 0o600, 0o660,
		func(group int) error {
			return unix.Fchownat(dir.FD(), contract.SocketFile, -1, group, unix.AT_SYMLINK_NOFOLLOW)
		},
		func(mode uint32) error { return unix.Fchmodat(dir.FD(), contract.SocketFile, mode, 0) })
	if err != nil {
		return nil, errors.Join(err, os.Remove(path), socket.Close())
	}
	return l, nil
}

// socketFile returns the file of the socket that was made at a path. It fails if the file is not
// in the opened directory. The system makes sockets only by paths, so somebody may have replaced
// the directory meanwhile.
func socketFile(dir *owneddir.Dir, path string) (os.FileInfo, error) {
	made, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("make the socket: %w", err)
	}
	var found unix.Stat_t
	if err := unix.Fstatat(dir.FD(), contract.SocketFile, &found, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, fmt.Errorf("make the socket %s: the directory was replaced meanwhile: %w", path, err)
	}
	if stat, ok := made.Sys().(*syscall.Stat_t); !ok || stat.Ino != found.Ino || stat.Dev != found.Dev || made.Mode().Type() != os.ModeSocket {
		return nil, fmt.Errorf("make the socket %s: the directory was replaced meanwhile", path)
	}
	return made, nil
}

// removeStale removes a socket that nobody listens on any more.
func removeStale(dir *owneddir.Dir, path string) error {
	var found unix.Stat_t
	err := unix.Fstatat(dir.FD(), contract.SocketFile, &found, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for a socket of an earlier broker: %w", err)
	}
	if found.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return fmt.Errorf("%s exists and is not a socket: remove it or choose another socket directory", path)
	}
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(context.Background(), "unix", path)
	switch {
	case err == nil:
		_ = conn.Close() // nothing was sent, so nothing can be lost
		return fmt.Errorf("another process listens on %s: stop it or choose another socket directory", path)
	case errors.Is(err, syscall.ECONNREFUSED):
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return fmt.Errorf("check whether another process listens on %s: %w", path, err)
	}
	if err := unix.Unlinkat(dir.FD(), contract.SocketFile, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket of an earlier broker: %w", err)
	}
	return nil
}
