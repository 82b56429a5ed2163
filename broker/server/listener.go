// SPDX-License-Identifier: Apache-2.0

package server

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
)

// listener is the socket of one caller.
type listener struct {
	*net.UnixListener
	path, caller string
	identity
	made os.FileInfo // the socket file that this listener made
	from *caller     // who connects, once the socket is served
}

// Accept implements net.Listener; its connections know their caller. One beyond the
// limit is closed, which tells its client to try again later.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		made := newCallerConn(conn, l.from, l.identity)
		if err := conn.SetWriteBuffer(sendBuffer); err == nil && l.from.admit(made) {
			return made, nil
		}
		_ = conn.Close() // its client is the one who learns of it
	}
}

func (o *SocketOptions) bind(dir directory) (*listener, error) {
	path := filepath.Join(dir.path, SocketName)
	if err := removeStale(path); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: private}
	made, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("make the socket %s: %w", path, err)
	}
	unix := made.(*net.UnixListener)
	unix.SetUnlinkOnClose(false) // it would remove another broker's socket just as well
	l := &listener{UnixListener: unix, path: path, caller: dir.caller, identity: o.identity(dir.caller)}
	if l.made, err = os.Lstat(path); err != nil {
		return nil, errors.Join(fmt.Errorf("make the socket: %w", err), unix.Close())
	}
	if err := o.grant(path, 0o600, 0o660); err != nil {
		return nil, errors.Join(err, os.Remove(path), unix.Close())
	}
	return l, nil
}

// removeStale removes a socket that nobody listens on any more.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for a socket of an earlier broker: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is no socket: remove it or choose another socket directory", path)
	}
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(context.Background(), "unix", path)
	switch {
	case err == nil:
		_ = conn.Close() // it only had to succeed
		return fmt.Errorf("another process listens on %s: stop it or choose another socket directory", path)
	case errors.Is(err, syscall.ECONNREFUSED):
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return fmt.Errorf("cannot tell whether another process listens on %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket of an earlier broker: %w", err)
	}
	return nil
}
