// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

const (
	// SocketName is the file name of every socket; clients have it built in.
	SocketName = "crypto-broker-server.sock"
	// DefaultSocketDir is where clients look for the socket.
	DefaultSocketDir = "/tmp/open-crypto-broker"
)

// maxSocketPath is the longest path in bytes that a socket can have: sun_path of
// unix(7) less the NUL that ends it.
const maxSocketPath = 107

// SocketOptions says which sockets to make.
type SocketOptions struct {
	// Dir is the absolute path of the directory of the sockets.
	Dir string
	// Callers names the callers, each a DNS label. Each has a directory below Dir
	// with a socket of its own. Without any, there is one socket in Dir itself.
	Callers []string
	// Profiles are the names of those that a caller may use. A caller that is not
	// in here may use all.
	Profiles map[string][]string
	// Shared tells that callers see the processes of each other and so can call by
	// the sockets of each other: profiles that name containers then allow none.
	Shared bool
	// Group is the id of the group that may connect; negative for only the
	// broker's own user.
	Group int
	// Logger gets what is odd about the directories but no reason to stop.
	Logger *slog.Logger
}

// Validate checks the options without touching anything.
func (o *SocketOptions) Validate() error {
	if !filepath.IsAbs(o.Dir) {
		return fmt.Errorf("socket directory %q: expected an absolute path", o.Dir)
	}
	seen := map[string]bool{}
	for _, caller := range o.Callers {
		if !profile.IsDNSLabel(caller) {
			return fmt.Errorf("caller %q: expected the name of a container, at most 63 lower-case letters, digits and inner hyphens", caller)
		}
		if seen[caller] {
			return fmt.Errorf("caller %q is named twice", caller)
		}
		seen[caller] = true
	}
	if err := o.validateProfiles(); err != nil {
		return err
	}
	for _, dir := range o.directories() {
		if path := filepath.Join(dir.path, SocketName); len(path) > maxSocketPath {
			return fmt.Errorf("the path of the socket %s has %d bytes, and the system allows at most %d: choose a shorter socket directory or caller name", path, len(path), maxSocketPath)
		}
	}
	return nil
}

type directory struct{ path, caller string }

func (o *SocketOptions) directories() []directory {
	if len(o.Callers) == 0 {
		return []directory{{path: filepath.Clean(o.Dir)}}
	}
	dirs := make([]directory, len(o.Callers))
	for i, caller := range o.Callers {
		dirs[i] = directory{filepath.Join(o.Dir, caller), caller}
	}
	return dirs
}

// Sockets are the sockets a broker listens on. It holds them alone: a second
// broker in the same directory is refused.
type Sockets struct {
	lock      *os.File
	listeners []*listener
}

// Listen makes the directories and the sockets in them. A directory that is
// there is kept, whatever happens: it may be mounted into the container of its
// caller, which would go on seeing the old one. A socket that a broker left
// behind when it was killed is replaced; one that somebody listens on is not.
func Listen(o SocketOptions) (*Sockets, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &Sockets{}
	if err := s.listen(o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Sockets) listen(o SocketOptions) error {
	if err := o.prepare(filepath.Clean(o.Dir)); err != nil {
		return err
	}
	var err error
	if s.lock, err = lock(o.Dir); err != nil {
		return err
	}
	for _, dir := range o.directories() {
		if dir.caller != "" {
			if err := o.prepare(dir.path); err != nil {
				return err
			}
		}
		l, err := o.bind(dir)
		if err != nil {
			return err
		}
		s.listeners = append(s.listeners, l)
	}
	return nil
}

// Paths returns the paths of the sockets.
func (s *Sockets) Paths() []string {
	paths := make([]string, len(s.listeners))
	for i, l := range s.listeners {
		paths[i] = l.path
	}
	return paths
}

// Close stops listening and removes the sockets, those alone that are still the
// ones it made.
func (s *Sockets) Close() error {
	var errs []error
	for _, l := range s.listeners {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
		if now, err := os.Lstat(l.path); err == nil && os.SameFile(l.made, now) {
			errs = append(errs, os.Remove(l.path))
		}
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	s.listeners, s.lock = nil, nil
	return errors.Join(errs...)
}

// prepare makes a directory, or puts mode and group of the broker's own right.
// A directory of somebody else, such as the root of a mounted volume, is used as
// it is.
func (o *SocketOptions) prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the socket directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("make the socket directory: %w", err)
	}
	owner, known := ownerOf(info)
	switch {
	case !known:
	case owner == os.Geteuid():
		return o.grant(dir, 0o700, 0o750)
	case owner != 0:
		o.Logger.Warn("the socket directory belongs to another user, who can replace the sockets in it",
			"directory", dir, "owner", owner)
	}
	return nil
}

// grant gives a file of the broker to its group, or to nobody else.
func (o *SocketOptions) grant(path string, alone, shared fs.FileMode) error {
	if o.Group < 0 {
		return os.Chmod(path, alone)
	}
	if err := os.Lchown(path, -1, o.Group); err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("give %s to the group %d: the broker's user must be a member of it: %w", path, o.Group, err)
		}
		return fmt.Errorf("give %s to the group %d: %w", path, o.Group, err)
	}
	return os.Chmod(path, shared)
}
