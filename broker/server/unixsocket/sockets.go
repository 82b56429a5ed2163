// SPDX-License-Identifier: Apache-2.0

package unixsocket

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/internal/owneddir"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/callers"
)

// maxSocketPath is the longest path in bytes that a socket can have: the size of sun_path
// (unix(7)) without the NUL at its end.
const maxSocketPath = 107

// Options describes the sockets to make.
type Options struct {
	// Dir is the absolute path of the directory of the sockets.
	Dir string
	// Callers names the callers, each a DNS label. Each has a directory below Dir
	// with a socket of its own. Without any, there is one socket in Dir itself.
	Callers []string
	// Profiles has, for each caller, the names of the profiles that the caller may use. A
	// caller that is not in the map may use all profiles.
	Profiles map[string][]string
	// Shared reports whether the callers see each other's processes, and so can call through each
	// other's sockets. Profiles that name containers then allow no caller.
	Shared bool
	// Group is the id of the group that may connect. If it is negative, only the broker's
	// own user may connect.
	Group int
}

// Validate returns what is wrong with the options. It does not touch the file system.
func (o *Options) Validate() error {
	if !filepath.IsAbs(o.Dir) {
		return fmt.Errorf("socket directory %q: expected an absolute path", o.Dir)
	}
	seen := map[string]bool{}
	for _, caller := range o.Callers {
		if !callers.IsContainerName(caller) {
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
	for _, at := range o.locations() {
		if path := filepath.Join(at.path, contract.SocketFile); len(path) > maxSocketPath {
			return fmt.Errorf("the path of the socket %s has %d bytes, and the system allows at most %d: choose a shorter socket directory or caller name", path, len(path), maxSocketPath)
		}
	}
	return nil
}

// location is the directory of one socket, and the caller that the socket is for.
type location struct{ path, caller string }

func (o *Options) locations() []location {
	if len(o.Callers) == 0 {
		return []location{{path: filepath.Clean(o.Dir)}}
	}
	locations := make([]location, len(o.Callers))
	for i, caller := range o.Callers {
		locations[i] = location{filepath.Join(o.Dir, caller), caller}
	}
	return locations
}

// Sockets are the sockets that a broker listens on. A second broker cannot use the same
// directory.
type Sockets struct {
	lock      *os.File
	listeners []*Listener
}

// Listen makes the directories and the sockets in them. It never replaces an existing
// directory: the directory may be mounted into the container of its caller, which would
// still see the old one. Listen replaces a socket that a killed broker has left behind. It
// fails if another process listens on a socket.
func Listen(o Options) (*Sockets, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &Sockets{}
	if err := s.listen(o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Sockets) listen(o Options) (err error) {
	dir, err := o.own(socketDirectory.Make(o.Dir))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if s.lock, err = lock(dir); err != nil {
		return err
	}
	for _, at := range o.locations() {
		if err := s.add(&o, dir, at); err != nil {
			return err
		}
	}
	return nil
}

// add makes the socket at a location. dir is the directory of all sockets.
func (s *Sockets) add(o *Options, dir *owneddir.Dir, at location) (err error) {
	if at.caller != "" {
		if dir, err = o.own(socketDirectory.Open(dir.FD(), at.caller, at.path)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, dir.Close()) }()
	}
	l, err := o.bind(dir, at.caller)
	if err != nil {
		return err
	}
	s.listeners = append(s.listeners, l)
	return nil
}

// Listeners returns the sockets, one for each caller.
func (s *Sockets) Listeners() []*Listener { return s.listeners }

// Paths returns the paths of the sockets.
func (s *Sockets) Paths() []string {
	paths := make([]string, len(s.listeners))
	for i, l := range s.listeners {
		paths[i] = l.path
	}
	return paths
}

// Close stops listening and removes the files of the sockets. It leaves a file that
// somebody has replaced since.
func (s *Sockets) Close() error {
	var errs []error
	for _, l := range s.listeners {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
		if !l.Gone() {
			errs = append(errs, os.Remove(l.path))
		}
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	s.listeners, s.lock = nil, nil
	return errors.Join(errs...)
}
